/// \file
/// Converts elements of every type to numbers and back, without the executor's code.
#pragma once

#include <cstddef>

#include "chorale/types.hpp"

namespace chorale::tools {

/// Describes the layout of a float type: sign, exponent, mantissa. A type without a mantissa is an integer.
struct Format {
  int mantissa = 0, bias = 0;
  bool is_signed = true;
  double exact = 0;  ///< every integer up to this one is a value of the type
};

Format format(DType);

/// Returns true if the type can hold infinity; fp8_e4m3 is a float that cannot.
bool has_infinities(DType);

/// Returns the element at `element` as a number, which is NaN if the element is one.
double decode(DType, const std::byte* element);

/// Writes `value` as the bits of one element. The type must be able to hold it exactly. Infinity becomes NaN
/// in a float type that has no infinity.
void encode(DType, double value, std::byte* element);

}  // namespace chorale::tools
