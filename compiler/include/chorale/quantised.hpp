#pragma once
/// \file
/// Says how often data was encoded on its way, and what that costs in accuracy.

#include <array>
#include <cstdint>
#include <string>

#include "chorale/codec.hpp"

namespace chorale {

/// Says how often something was encoded, by CodecFormat.
using Quantised = std::array<uint16_t, codec_format_count>;

/// Returns the larger number of each format.
Quantised most_of(const Quantised&, const Quantised&);

/// Returns "2 x fp8_e4m3, 1 x int8"; "" if nothing was encoded.
std::string quantised_words(const Quantised&);

/// Returns by how much an output of a sum, a minimum or a maximum differs at most from that of a plan without
/// codecs. It is a formula such as "(1 + 1/28)^2 - 1", to be multiplied by M: the sum, over the addends, of
/// the largest magnitude in an addend's block. Returns "0" if nothing was encoded. The rounding of the
/// elements' type and of f32 is added to it. Infinities and NaNs have no bound.
std::string error_bound(const Quantised&);

/// Returns the value of the formula of error_bound().
double error_factor(const Quantised&);

}  // namespace chorale
