"""Programs of our own in Python for MSCCL++'s reference plans. tests/mscclpp/manifest.tsv names the plan of each, and
tests/mscclpp has the same programs in C++."""
from . import allgather, allreduce, alltoall, executor_tests, multi_node, unit_channels, unit_local

PROGRAMS = {name: function
            for module in (allgather, allreduce, alltoall, executor_tests, multi_node, unit_channels, unit_local)
            for name, function in vars(module).items() if name.startswith(module.PREFIXES)}
