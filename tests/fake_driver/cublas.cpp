// A cuBLAS for `chorale doctor`, which asks whether there is one and calls nothing of it.

extern "C" int chorale_fake_cublas() { return 0; }
