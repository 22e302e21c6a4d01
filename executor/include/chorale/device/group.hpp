#pragma once
// A group is the set of threads that work on something together. Every function of the device library takes
// its group as an argument; no group is implied.

#if defined(__CUDACC__)
#include "chorale/device/group_cuda.hpp"
#else
#include "chorale/device/group_cpu.hpp"
#endif
