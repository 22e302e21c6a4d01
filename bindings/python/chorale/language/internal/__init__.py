"""The modules that programs of MSCCL++ import besides the public ones."""
