/// \file
/// Times PyTorch's fused symmetric-memory operations with torch_fused.py.
#pragma once

#include <string>
#include <vector>

#include "bench/overlap/shape.hpp"

namespace chorale::overlap {

enum class TorchOperation { gather, scatter };

/// Holds the time of one operation.
struct TorchTime {
  TorchOperation operation;
  Shape shape;
  double ms;
};

/// Runs the script with `interpreter` until it ends. The GPUs must be idle. Its messages go to stderr.
/// \param wanted  the operations and shapes to time
/// \returns the times that the script has measured, each the faster of call by call and graph; none if the
/// script could not run
/// \throws Wrong if the script reports a wrong result
std::vector<TorchTime> time_torch(const std::string& interpreter, const std::string& script, int ranks,
                                  const std::vector<TorchTime>& wanted);

}  // namespace chorale::overlap
