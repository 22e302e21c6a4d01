#include "tools/pattern.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tools/elements.hpp"

namespace chorale::tools {

void Mismatch::add(const Mismatch& other) {
  const uint64_t both = elements + other.elements;
  if (elements == 0 || (other.elements != 0 && other.index < index)) *this = other;
  elements = both;
}

Pattern::Pattern(DType type, uint64_t elements, uint64_t segment_elements, const Value& value)
    : type_(type),
      width_(dtype_size(type)),
      elements_(elements),
      segment_(std::max<uint64_t>(segment_elements, 1)),
      tiles_((elements + segment_ - 1) / segment_) {
  for (size_t segment = 0; segment < tiles_.size(); ++segment) {
    const uint64_t first = segment * segment_;
    if (!value(first)) continue;
    const uint64_t length = std::min({period, segment_, elements - first});
    std::vector<std::byte>& bytes = tiles_[segment].bytes;
    bytes.resize(length * width_);
    for (uint64_t index = 0; index < length; ++index) {
      encode(type, *value(first + index), bytes.data() + index * width_);
    }
  }
}

/// Returns true for a NaN of f32 or f64, whose bits depend on the machine's arithmetic.
bool Pattern::is_any_nan(const std::byte* element) const {
  return (type_ == DType::f32 || type_ == DType::f64) && std::isnan(decode(type_, element));
}

/// Calls use(offset from `first`, bytes of the tile, their number) for each run of defined bytes.
template <class Use>
void Pattern::walk(uint64_t first, uint64_t bytes, const Use& use) const {
  const uint64_t segment_bytes = segment_ * width_;
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t at = first + done, within = at % segment_bytes;
    const std::vector<std::byte>& tile = tiles_[at / segment_bytes].bytes;
    uint64_t run = std::min(segment_bytes - within, bytes - done);
    if (!tile.empty()) {
      const uint64_t phase = within % tile.size();
      run = std::min<uint64_t>(run, tile.size() - phase);
      use(done, tile.data() + phase, run);
    }
    done += run;
  }
}

void Pattern::copy(uint64_t first, std::byte* to, uint64_t bytes) const {
  walk(first, bytes,
       [&](uint64_t at, const std::byte* tile, uint64_t run) { std::memcpy(to + at, tile, run); });
}

std::optional<Mismatch> Pattern::compare(uint64_t first, const std::byte* found, uint64_t bytes) const {
  std::optional<Mismatch> result;
  walk(first, bytes, [&](uint64_t at, const std::byte* tile, uint64_t run) {
    if (std::memcmp(found + at, tile, run) == 0) return;
    for (uint64_t byte = 0; byte < run; byte += width_) {
      if (std::memcmp(found + at + byte, tile + byte, width_) == 0) continue;
      if (is_any_nan(tile + byte) && is_any_nan(found + at + byte)) continue;
      if (tolerance_ != 0 &&
          std::abs(decode(type_, found + at + byte) - decode(type_, tile + byte)) <= tolerance_)
        continue;
      if (!result) {
        result = {0, (first + at + byte) / width_, 0, decode(type_, found + at + byte),
                  decode(type_, tile + byte)};
      }
      ++result->elements;
    }
  });
  return result;
}

}  // namespace chorale::tools
