/// \file
/// A KernelContext is what kernels in other languages than C++ get of a transport and of a window. They pass
/// its address to the functions of libchorale_device.bc (docs/bitcode.md).
#pragma once

#include <cstdint>

#include "chorale/device.hpp"

namespace chorale {

/// Holds what kernels need, in memory that they read. Its layout may change from version to version.
struct KernelContext {
  EndpointTable table;  ///< of a transport; no ranks if there is none
  WindowView window;    ///< of a OneSidedWindow; no ranks if there is none
  Deadline deadline;    ///< limits each wait
  uint32_t rank = 0;    ///< of this process
};

}  // namespace chorale
