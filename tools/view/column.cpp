#include "tools/view/column.hpp"

#include <cstddef>

namespace chorale::tools {

void Column::add(uint64_t number) {
  for (; number >= 128; number >>= 7) bytes_ += char(number % 128 + 128);
  bytes_ += char(number);
}

std::string Column::text() const { return base64(bytes_); }

std::string base64(std::string_view bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t left = bytes.size() - at;
    const auto byte = [&](size_t k) { return k < left ? uint32_t(uint8_t(bytes[at + k])) : 0; };
    const uint32_t all = byte(0) << 16 | byte(1) << 8 | byte(2);
    text += digits[all >> 18];
    text += digits[all >> 12 & 63];
    text += left > 1 ? digits[all >> 6 & 63] : '=';
    text += left > 2 ? digits[all & 63] : '=';
  }
  return text;
}

}  // namespace chorale::tools
