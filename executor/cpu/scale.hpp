/// \file
/// Multiplies elements by a factor on the CPU.
#pragma once

#include <cstdint>

#include "chorale/factor.hpp"
#include "chorale/types.hpp"

namespace chorale::cpu {

/// Multiplies as Executor::scale() says. It reads the factor once, at the beginning.
void scale(void* out, const void* in, uint64_t elements, DType dtype, const Factor& factor);

}  // namespace chorale::cpu
