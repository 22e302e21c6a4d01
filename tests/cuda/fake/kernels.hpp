/// \file
/// Declares kernels that do nothing, and a record of the last launch.
#pragma once

#include <string>

#include "executor/cuda/kernels/launch.hpp"

namespace chorale::test::fake {

/// Return the last launch of this thread.
std::string last_kernel();
const cuda::Launch& last_launch();

}  // namespace chorale::test::fake
