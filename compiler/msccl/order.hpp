#pragma once
/// \file
/// An Order knows which steps of an algorithm come before which.

#include <cstdint>
#include <vector>

#include "algorithm.hpp"
#include "connections.hpp"

namespace chorale::msccl {

/// Names a step of a gpu.
struct Moment {
  uint32_t gpu = 0;
  StepRef step;
};

/// Computes which steps come before which, whatever the speed of the gpus. The order follows from thread
/// blocks, dependencies and messages.
class Order {
 public:
  /// \param dependencies  by gpu
  Order(const Algorithm&, const std::vector<Connection>&,
        const std::vector<std::vector<Dependency>>& dependencies);

  /// Returns whether `first` has ended before `then` accesses anything; false if that is unknown.
  bool before(Moment first, Moment then) const;

 private:
  /// Says that a step comes after one of another thread block.
  struct Edge {
    uint32_t block = 0, step = 0;  ///< the step before
    uint32_t then = 0;             ///< the number of the step after
  };
  /// Says how many steps of each thread block have ended when a step of its own thread block begins.
  struct Clock {
    uint32_t step = 0;
    std::vector<uint32_t> over;
  };

  uint32_t flat(Moment at) const { return first_[at.gpu] + at.step.block; }
  const Clock& clock(uint32_t block, uint32_t step) const;
  void run(const std::vector<std::vector<Edge>>& edges);

  // Thread blocks are numbered across all gpus.
  std::vector<uint32_t> first_;             // number of a gpu's first thread block
  std::vector<std::vector<Clock>> clocks_;  // by thread block
  bool known_ = false;
};

}  // namespace chorale::msccl
