#include "chorale/byte_count.hpp"

#include <cctype>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

#include "chorale/usage_error.hpp"

namespace chorale {

uint64_t read_byte_count(const std::string& text) {
  const auto refuse = [&](const std::string& why) -> uint64_t {
    throw UsageError("'" + text + "' is not a size" + why);
  };
  const std::string too_large = ": it is larger than 2^64 - 1";
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) return refuse(too_large);
  if (error != std::errc()) return refuse("");
  std::string suffix(end, text.data() + text.size());
  if (suffix.ends_with("iB")) suffix.resize(suffix.size() - 2);
  if (suffix == "B") suffix.clear();
  constexpr std::string_view letters = "KMGT";
  unsigned shift = 0;
  if (!suffix.empty()) {
    const size_t at = letters.find(char(std::toupper(static_cast<unsigned char>(suffix[0]))));
    if (suffix.size() != 1 || at == letters.npos) return refuse("");
    shift = unsigned(at + 1) * 10;
  }
  if (number != 0 && number > (UINT64_MAX >> shift)) return refuse(too_large);
  return number << shift;
}

std::string byte_count_text(uint64_t bytes) {
  unsigned step = 0;
  while (bytes != 0 && bytes % 1024 == 0 && step < 4) bytes /= 1024, ++step;
  return std::to_string(bytes) + (step ? std::string(1, "KMGT"[step - 1]) : "");
}

}  // namespace chorale
