#pragma once
// Computes what a layout means, without streams, slices and transfers, in one tensor for all ranks.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chorale/schedule/schedule.hpp"

namespace chorale::test {

using Extents = std::vector<uint64_t>;

/// Holds a whole tensor, row-major.
struct Whole {
  Extents extents;
  std::vector<double> values;
};

inline uint64_t elements(const Extents& extents) {
  uint64_t count = 1;
  for (const uint64_t extent : extents) count *= extent;
  return count;
}

/// Calls f with every index of `extents`, with the last axis fastest.
template <class F>
void each_index(const Extents& extents, const F& f) {
  Extents index(extents.size());
  for (uint64_t count = elements(extents); count > 0; --count) {
    f(index);
    for (size_t axis = extents.size(); axis-- > 0;) {
      if (++index[axis] < extents[axis]) break;
      index[axis] = 0;
    }
  }
}

/// Returns an element. An axis of extent 1 is the same for all indices; missing axes are the outermost.
inline double at(const Whole& tensor, const Extents& index) {
  uint64_t offset = 0;
  const size_t missing = index.size() - tensor.extents.size();
  for (size_t axis = 0; axis < tensor.extents.size(); ++axis)
    offset = offset * tensor.extents[axis] + (tensor.extents[axis] == 1 ? 0 : index[axis + missing]);
  return tensor.values[offset];
}

class Meaning {
 public:
  Meaning(const schedule::Schedule& schedule, schedule::Values values) : s_(schedule) {
    for (const schedule::Tensor& tensor : s_.tensors) {
      Whole& whole = tensors_.emplace_back();
      for (const schedule::Axis& axis : tensor.axes)
        whole.extents.push_back(uint64_t(schedule::evaluate(s_.exprs, axis.extent, values).value));
      whole.values.resize(elements(whole.extents));
    }
  }

  Whole& operator[](size_t tensor) { return tensors_[tensor]; }

  /// Computes run `run`. Its inputs are small whole numbers, so that sums are exact in any order.
  void run(int run) {
    for (size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
      if (s_.tensors[tensor].role != schedule::Role::in) continue;
      uint64_t state = uint64_t(run) * 7919 + tensor * 104729 + 1;
      for (double& value : tensors_[tensor].values)
        value = double(int((state = state * 6364136223846793005u + 1442695040888963407u) >> 60) % 5 - 2);
    }
    for (const schedule::Op& op : s_.layout) compute(op);
  }

  /// Returns the part that a rank holds: its own slice of an axis over ranks.
  std::vector<float> of_rank(size_t tensor, uint64_t rank) const {
    std::vector<float> part;
    const Whole& whole = tensors_[tensor];
    each_index(whole.extents, [&](const Extents& index) {
      for (size_t axis = 0; axis < index.size(); ++axis)
        if (s_.tensors[tensor].axes[axis].tag == schedule::Tag::ranks && index[axis] != rank) return;
      part.push_back(float(at(whole, index)));
    });
    return part;
  }

 private:
  void compute(const schedule::Op& op) {
    Whole& out = tensors_[op.writes[0].tensor];
    const auto in = [&](size_t k) -> const Whole& { return tensors_[op.reads[k].tensor]; };
    size_t next = 0;
    each_index(out.extents, [&](const Extents& index) { out.values[next++] = element(op, index, in); });
  }

  template <class In>
  double element(const schedule::Op& op, const Extents& index, const In& in) const {
    if (op.name == "set") return at(in(0), index);
    if (op.name == "add") return at(in(0), index) + at(in(1), index);
    double total = 0;
    if (op.name == "sum") {
      const size_t axis = size_t(schedule::evaluate(s_.exprs, op.attributes.at("axis"), {}).value);
      Extents whole = index;
      whole.insert(whole.begin() + ptrdiff_t(axis), 0);
      for (; whole[axis] < in(0).extents[axis]; ++whole[axis]) total += at(in(0), whole);
      return total;
    }
    const bool transposed = op.name == "linear";
    const uint64_t row = index[index.size() - 2], column = index.back();
    Extents left = index, right = index;
    for (uint64_t k = 0; k < in(0).extents.back(); ++k) {
      left[index.size() - 2] = row;
      left.back() = k;
      right[index.size() - 2] = transposed ? column : k;
      right.back() = transposed ? k : column;
      total += at(in(0), left) * at(in(1), right);
    }
    if (op.reads.size() == 3) total += bias(in(2), index);
    return total;
  }

  static double bias(const Whole& tensor, Extents index) {
    index.erase(index.end() - 2);  // it has no rows
    return at(tensor, index);
  }

  const schedule::Schedule& s_;
  std::vector<Whole> tensors_;
};

}  // namespace chorale::test
