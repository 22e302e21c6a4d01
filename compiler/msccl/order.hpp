#pragma once
/// \file
/// What comes before what in an algorithm.

#include <cstdint>
#include <vector>

#include "algorithm.hpp"
#include "connections.hpp"

namespace chorale::msccl {

/// A step of some gpu.
struct Moment {
  uint32_t gpu = 0;
  StepRef step;
};

/// Which steps come before which, whatever the speed of the gpus: by their order in thread blocks, by
/// dependencies and by messages.
class Order {
 public:
  /// \param dependencies  by gpu
  Order(const Algorithm&, const std::vector<Connection>&,
        const std::vector<std::vector<Dependency>>& dependencies);

  /// Whether `first` is over before `then` reads or overwrites anything; false if it is not known.
  bool before(Moment first, Moment then) const;

 private:
  /// A step is behind another one, of another thread block.
  struct Edge {
    uint32_t block = 0, step = 0;  ///< the one before
    uint32_t then = 0;             ///< step of the one behind
  };
  /// From a step of its thread block on: so many steps of each thread block are over.
  struct Clock {
    uint32_t step = 0;
    std::vector<uint32_t> over;
  };

  uint32_t flat(Moment at) const { return first_[at.gpu] + at.step.block; }
  const Clock& clock(uint32_t block, uint32_t step) const;
  void run(const std::vector<std::vector<Edge>>& edges);

  // Thread blocks are numbered through all gpus.
  std::vector<uint32_t> first_;             // number of a gpu's first
  std::vector<std::vector<Clock>> clocks_;  // by thread block
  bool known_ = false;
};

}  // namespace chorale::msccl
