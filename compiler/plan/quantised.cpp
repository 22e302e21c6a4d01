#include "chorale/quantised.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace chorale {

Quantised most_of(const Quantised& one, const Quantised& other) {
  Quantised most;
  for (size_t format = 0; format < most.size(); ++format) most[format] = std::max(one[format], other[format]);
  return most;
}

std::string quantised_words(const Quantised& of) {
  std::string words;
  for (const CodecFormat format : all_codec_formats) {
    if (const uint16_t times = of[size_t(format)])
      words += fmt::format("{}{} x {}", words.empty() ? "" : ", ", times, codec_format_name(format));
  }
  return words;
}

// An encoding changes an element by at most the largest magnitude of its block over `steps`. So if no element
// of a block is larger than m, no element of the decoded block is larger than m (1 + 1 / steps), and a sum is
// at most the sum of these bounds. An addend that was encoded with steps s1, s2 ... adds at most (1 + 1/s1)
// (1 + 1/s2) ... - 1 times its m.
std::string error_bound(const Quantised& of) {
  std::string product;
  for (const CodecFormat format : all_codec_formats) {
    const uint16_t times = of[size_t(format)];
    if (!times) continue;
    product += fmt::format("{}(1 + 1/{})", product.empty() ? "" : " * ", codec_steps(format));
    if (times > 1) product += fmt::format("^{}", times);
  }
  return product.empty() ? "0" : product + " - 1";
}

double error_factor(const Quantised& of) {
  double product = 1;
  for (const CodecFormat format : all_codec_formats)
    product *= std::pow(1 + 1.0 / codec_steps(format), of[size_t(format)]);
  return product - 1;
}

}  // namespace chorale
