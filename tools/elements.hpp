/// \file
/// Elements of every type as numbers, without the executor's code.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "chorale/types.hpp"

namespace chorale::tools {

/// Layout of a float type: sign, exponent, mantissa. No mantissa: an integer.
struct Format {
  int mantissa = 0, bias = 0;
  bool is_signed = true;
  double exact = 0;  ///< every integer up to here is a value of the type
};

Format format(DType);

/// Whether the type has values for infinity; fp8_e4m3 is a float that has none.
bool has_infinities(DType);

/// The element at `element` as a number; NaN for one.
double decode(DType, const std::byte* element);

/// `value`, which the type must be able to hold exactly, as the bits of one element. Infinity is NaN in a
/// float that has no infinities.
void encode(DType, double value, std::byte* element);

}  // namespace chorale::tools
