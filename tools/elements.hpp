/// \file
/// Converts elements of every type to numbers and back, without the executor's code.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "chorale/types.hpp"

namespace chorale::tools {

/// The layout of a float type: sign, exponent, mantissa. A type without mantissa is an integer.
struct Format {
  int mantissa = 0, bias = 0;
  bool is_signed = true;
  double exact = 0;  ///< every integer up to here is a value of the type
};

Format format(DType);

/// Returns true if the type has values for infinity; fp8_e4m3 is a float that has none.
bool has_infinities(DType);

/// Returns the element at `element` as a number; NaN if it is one.
double decode(DType, const std::byte* element);

/// Writes `value`, which the type must be able to hold exactly, as the bits of one element. Infinity becomes
/// NaN in a float that has no infinities.
void encode(DType, double value, std::byte* element);

}  // namespace chorale::tools
