#include "box_index.hpp"

#include <algorithm>
#include <utility>

namespace chorale::schedule {

BoxIndex::BoxIndex(const ConcreteTensor& tensor) : strides_(tensor.shape.size()) {
  uint64_t stride = 1;
  for (size_t axis = strides_.size(); axis-- > 0; stride *= tensor.shape[axis]) strides_[axis] = stride;
}

BoxIndex::Span BoxIndex::span(const Box& box) const {
  Span span;
  for (size_t axis = 0; axis < strides_.size(); ++axis) {
    span.first += box.lo[axis] * strides_[axis];
    span.last += (box.lo[axis] + box.extent[axis] - 1) * strides_[axis];
  }
  return span;
}

void BoxIndex::add(const Box& box, size_t id) {
  spans_.push_back(span(box));
  spans_.back().id = id;
}

void BoxIndex::build() {
  std::sort(spans_.begin(), spans_.end(),
            [](const Span& a, const Span& b) { return std::pair(a.first, a.id) < std::pair(b.first, b.id); });
  build(0, spans_.size());
}

uint64_t BoxIndex::build(size_t begin, size_t end) {
  if (begin == end) return 0;
  const size_t root = begin + (end - begin) / 2;
  return spans_[root].last_below = std::max({spans_[root].last, build(begin, root), build(root + 1, end)});
}

void BoxIndex::find(size_t begin, size_t end, const Span& wanted, std::vector<size_t>& ids) const {
  if (begin == end) return;
  const size_t root = begin + (end - begin) / 2;
  const Span& here = spans_[root];
  if (here.last_below < wanted.first) return;
  find(begin, root, wanted, ids);
  if (here.first > wanted.last) return;
  if (here.last >= wanted.first && here.id >= wanted.id) ids.push_back(here.id);
  find(root + 1, end, wanted, ids);
}

std::vector<size_t> BoxIndex::near(const Box& box, size_t least) const {
  std::vector<size_t> ids;
  Span wanted = span(box);
  wanted.id = least;
  find(0, spans_.size(), wanted, ids);
  if (!std::is_sorted(ids.begin(), ids.end())) std::sort(ids.begin(), ids.end());  // rare, see spans_
  return ids;
}

}  // namespace chorale::schedule
