#include "copies.hpp"

#include <numeric>

namespace chorale::schedule_run {
namespace {

/// Gives the elements of a box as runs of bytes that are contiguous in memory.
class Runs {
 public:
  Runs(const schedule::Box& box, const schedule::ConcreteTensor& tensor) : bytes_(dtype_size(tensor.dtype)) {
    uint64_t stride = bytes_;
    bool inner_whole = true;
    for (size_t axis = tensor.shape.size(); axis-- > 0;) {
      first_ += box.lo[axis] * stride;
      if (inner_whole) {
        bytes_ = box.extent[axis] * stride;
      } else if (box.extent[axis] != 1) {
        outer_.insert(outer_.begin(), {box.extent[axis], stride});
      }
      inner_whole = inner_whole && box.extent[axis] == tensor.shape[axis];
      stride *= tensor.shape[axis];
    }
  }

  uint64_t bytes() const { return bytes_; }  ///< bytes of each run
  /// Returns the offset of run `index` from the start of the tensor.
  uint64_t at(uint64_t index) const {
    uint64_t offset = first_;
    for (size_t axis = outer_.size(); axis-- > 0;) {
      offset += index % outer_[axis].extent * outer_[axis].stride;
      index /= outer_[axis].extent;
    }
    return offset;
  }

 private:
  struct Axis {
    uint64_t extent, stride;
  };
  uint64_t bytes_, first_ = 0;
  std::vector<Axis> outer_;
};

/// Adds a piece. It becomes a row of the last copy if it is where the next row would be.
void add(std::vector<Copy>& copies, const Copy& piece) {
  if (!copies.empty()) {
    Copy& last = copies.back();
    if (last.rows == 1 && last.bytes == piece.bytes && piece.to >= last.to + last.bytes &&
        piece.from >= last.from + last.bytes) {
      last.to_pitch = uint64_t(piece.to - last.to);
      last.from_pitch = uint64_t(piece.from - last.from);
      last.rows = 2;
      return;
    }
    if (last.rows > 1 && last.bytes == piece.bytes && piece.to == last.to + last.rows * last.to_pitch &&
        piece.from == last.from + last.rows * last.from_pitch) {
      ++last.rows;
      return;
    }
  }
  copies.push_back(piece);
}

}  // namespace

std::vector<Copy> copies_between(char* to_base, const schedule::Box& to,
                                 const schedule::ConcreteTensor& to_tensor, const char* from_base,
                                 const schedule::Box& from, const schedule::ConcreteTensor& from_tensor) {
  std::vector<Copy> copies;
  if (to.bytes == 0) return copies;
  const Runs there(to, to_tensor), here(from, from_tensor);
  const uint64_t piece = std::gcd(there.bytes(), here.bytes());
  for (uint64_t done = 0; done < to.bytes; done += piece) {
    add(copies, {.to = to_base + there.at(done / there.bytes()) + done % there.bytes(),
                 .from = from_base + here.at(done / here.bytes()) + done % here.bytes(),
                 .bytes = piece});
  }
  return copies;
}

}  // namespace chorale::schedule_run
