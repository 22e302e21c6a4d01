#include "frames.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace chorale::bootstrap {

std::string head_of(size_t bytes, char letter) { return fmt::format("{}{:08x}{}", magic, bytes, letter); }

std::string encode(const Frame& frame) {
  return head_of(frame.text.size() + 1, char(frame.kind)) + frame.text;
}

std::optional<Frame> FrameReader::next() {
  if (broken_) return std::nullopt;
  const size_t seen = std::min(incoming_.size(), magic.size());
  broken_ = incoming_.compare(0, seen, magic, 0, seen) != 0;
  if (broken_ || incoming_.size() < head_bytes) return std::nullopt;
  size_t length = 0;
  for (const char digit : std::string_view(incoming_).substr(magic.size(), length_digits)) {
    const size_t value = std::string_view("0123456789abcdef").find(digit);
    broken_ = broken_ || value > 15;
    length = length * 16 + value % 16;
  }
  broken_ = broken_ || length == 0 || length > limit_;
  if (broken_ || incoming_.size() < head_bytes + length) return std::nullopt;
  Frame frame{FrameKind(incoming_[head_bytes]), incoming_.substr(head_bytes + 1, length - 1)};
  incoming_.erase(0, head_bytes + length);
  return frame;
}

}  // namespace chorale::bootstrap
