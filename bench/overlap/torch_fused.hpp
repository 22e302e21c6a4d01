/// \file
/// PyTorch's fused symmetric-memory operations, by torch_fused.py.
#pragma once

#include <string>
#include <vector>

#include "bench/overlap/shape.hpp"

namespace chorale::overlap {

enum class TorchOperation { gather, scatter };

/// One that was timed.
struct TorchTime {
  TorchOperation operation;
  Shape shape;
  double ms;
};

/// Runs the script with `interpreter` until it ends; it must not find the GPUs busy. What it says of itself
/// goes to stderr. \param wanted  without times \returns those that it has timed, the faster of call by call
/// and graph; none if it could not run \throws Wrong if it says that a result is wrong
std::vector<TorchTime> time_torch(const std::string& interpreter, const std::string& script, int ranks,
                                  const std::vector<TorchTime>& wanted);

}  // namespace chorale::overlap
