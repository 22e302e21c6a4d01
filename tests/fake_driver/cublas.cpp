// This fake cuBLAS is for `chorale doctor`, which checks that there is one and calls none of its functions.

extern "C" int chorale_fake_cublas() { return 0; }
