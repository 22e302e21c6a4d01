/// \file
/// Makes test data of any size once, and copies or compares it at the speed of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "chorale/types.hpp"

namespace chorale::tools {

/// Describes one wrong element of an output.
struct Mismatch {
  uint32_t rank = 0;
  uint64_t index = 0;     ///< the element of the output
  uint64_t elements = 0;  ///< the number of wrong elements in this rank's output
  double got = 0, expected = 0;

  /// Merges the other's findings into this: the first index and the sum.
  void add(const Mismatch& other);
};

/// Describes a buffer as equal segments, each of which repeats after `period` elements.
///
/// The period is prime. So data in a wrong place does not look right there: it is off by a multiple of a
/// chunk, a cache line or a page.
class Pattern {
 public:
  static constexpr uint64_t period = 262139;

  /// Returns the value of an element of the buffer; nothing if its whole segment may be anything.
  using Value = std::function<std::optional<double>(uint64_t index)>;

  /// \param value  is called for the first `period` elements of each segment
  Pattern(DType, uint64_t elements, uint64_t segment_elements, const Value& value);

  /// Makes compare() accept elements that differ by at most `tolerance` from those of the pattern.
  void accept(double tolerance) { tolerance_ = tolerance; }

  uint64_t bytes() const { return elements_ * width_; }

  /// Writes the bytes [first, first + bytes), which are whole elements, to `to`. It skips undefined bytes.
  void copy(uint64_t first, std::byte* to, uint64_t bytes) const;

  /// Compares the same bytes, bit for bit, unless accept() was called; all NaNs of f32 and f64 count as
  /// equal. Returns nothing if all are right.
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
  double tolerance_ = 0;
};

}  // namespace chorale::tools
