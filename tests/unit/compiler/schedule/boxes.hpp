#pragma once
/// \file
/// Makes boxes of a tensor, for tests.

#include <cstdint>
#include <utility>
#include <vector>

#include "chorale/schedule/concrete.hpp"

namespace chorale::schedule {

inline ConcreteTensor tensor_of(std::vector<uint64_t> shape) {
  ConcreteTensor tensor;
  tensor.shape = std::move(shape);
  return tensor;
}

inline Box box_of(std::vector<uint64_t> lo, std::vector<uint64_t> extent) {
  Box box{.tensor = 0, .lo = std::move(lo), .extent = std::move(extent), .shape = {}, .strides = {}};
  box.bytes = 4;
  return box;
}

}  // namespace chorale::schedule
