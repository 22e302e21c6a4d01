#pragma once
/// \file
/// Which of many boxes of a tensor may overlap with one, without looking at all.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chorale/host/concrete.hpp"

namespace chorale::host {

/// Boxes by the elements between their first and their last one. What turns cut off along the outermost axes
/// lies apart; boxes that lie beside each other in rows are all near.
class BoxIndex {
 public:
  explicit BoxIndex(const ConcreteTensor&);

  /// Not behind build(). Every box has elements; `id` is the caller's.
  void add(const Box&, size_t id);
  void build();

  /// The ids, not below `least`, of all boxes that overlap with this one, and of some others; ascending.
  std::vector<size_t> near(const Box&, size_t least = 0) const;

 private:
  struct Span {
    uint64_t first = 0, last = 0;
    size_t id = 0;
    uint64_t last_below = 0;  ///< the last element of all spans below this one in the tree
  };
  Span span(const Box&) const;
  uint64_t build(size_t begin, size_t end);
  /// \param wanted  with the least id
  void find(size_t begin, size_t end, const Span& wanted, std::vector<size_t>& ids) const;

  std::vector<uint64_t> strides_;  // by axis, in elements
  std::vector<Span> spans_;        // by first element and id: a tree whose root is in the middle
};

}  // namespace chorale::host
