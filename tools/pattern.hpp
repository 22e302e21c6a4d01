/// \file
/// Test data of any size that is made once and copied or compared at the speed of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "chorale/types.hpp"

namespace chorale::tools {

/// One element that is not what it must be.
struct Mismatch {
  uint32_t rank = 0;
  uint64_t index = 0;     ///< element of the output
  uint64_t elements = 0;  ///< how many of this rank's output are wrong
  double got = 0, expected = 0;

  /// Takes the other's findings in: the first index and the sum.
  void add(const Mismatch& other);
};

/// A buffer's contents as equal segments, each of which repeats after `period` elements.
///
/// The period is prime, so that data that has gone to a wrong place, which is off by a multiple of a chunk, a
/// line or a page, does not look right there.
class Pattern {
 public:
  static constexpr uint64_t period = 262139;

  /// The value of an element of the buffer; nothing where it may be anything, then in its whole segment.
  using Value = std::function<std::optional<double>(uint64_t index)>;

  /// \param value  asked for the first `period` elements of each segment
  Pattern(DType, uint64_t elements, uint64_t segment_elements, const Value& value);

  uint64_t bytes() const { return elements_ * width_; }

  /// Writes the bytes [first, first + bytes) to `to`; whole elements. Undefined ones are left alone.
  void copy(uint64_t first, std::byte* to, uint64_t bytes) const;

  /// Compares the same bytes, bit for bit; NaNs of f32 and f64 are all the same. Nothing if all are right.
  std::optional<Mismatch> compare(uint64_t first, const std::byte* found, uint64_t bytes) const;

 private:
  struct Tile {
    std::vector<std::byte> bytes;  ///< empty: undefined
  };

  bool is_any_nan(const std::byte* element) const;
  template <class Use>
  void walk(uint64_t first, uint64_t bytes, const Use& use) const;

  DType type_;
  uint64_t width_, elements_, segment_;
  std::vector<Tile> tiles_;
};

}  // namespace chorale::tools
