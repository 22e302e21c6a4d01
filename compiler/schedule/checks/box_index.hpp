#pragma once
/// \file
/// A BoxIndex finds the boxes of a tensor that may overlap a given box, without comparing it with all of
/// them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chorale/schedule/concrete.hpp"

namespace chorale::schedule {

/// Orders boxes by the interval from their first to their last element. Boxes that turns cut off along the
/// outermost axes have disjoint intervals. Boxes that are beside each other in rows have overlapping
/// intervals, so all of these are near.
class BoxIndex {
 public:
  explicit BoxIndex(const ConcreteTensor&);

  /// Adds a box. Call it only before build(). Every box must have elements. The caller chooses `id`.
  void add(const Box&, size_t id);
  void build();

  /// Returns the ids of all boxes that overlap this one, and of some others, in ascending order. It leaves
  /// out ids below `least`.
  std::vector<size_t> near(const Box&, size_t least = 0) const;

 private:
  struct Span {
    uint64_t first = 0, last = 0;
    size_t id = 0;
    uint64_t last_below = 0;  ///< the last element of this span and of all below it in the tree
  };
  Span span(const Box&) const;
  uint64_t build(size_t begin, size_t end);
  /// \param wanted  the span that the results overlap; its id is the smallest id to find
  void find(size_t begin, size_t end, const Span& wanted, std::vector<size_t>& ids) const;

  std::vector<uint64_t> strides_;  // by axis, in elements
  std::vector<Span> spans_;        // by first element and id: a tree whose root is in the middle
};

}  // namespace chorale::schedule
