/// \file
/// Kernels that do nothing, and what was last launched.
#pragma once

#include <string>

#include "executor/cuda/tape.hpp"

namespace chorale::test::fake {

/// By this thread.
std::string last_kernel();
const cuda::Launch& last_launch();

}  // namespace chorale::test::fake
