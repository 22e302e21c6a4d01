/// \file
/// The thread blocks of a carry on the CPU: fibers that take turns on their lane's thread.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "../carry.hpp"

namespace chorale::hostrun {

/// What the fibers ask of their lane.
class CarryHost {
 public:
  virtual ~CarryHost() = default;
  /// Until ready(state), or until the lane has to stop: then the world's abort word says so.
  virtual void wait(bool (*ready)(const void*), const void* state) = 0;
  /// Before what peers can see.
  virtual void step() = 0;
};

/// Of one lane; keeps the fibers from carry to carry.
class CarryFibers {
 public:
  CarryFibers();
  ~CarryFibers();
  CarryFibers(CarryFibers&&) noexcept;

  /// Runs the blocks; returns when all have ended.
  /// \param failed  told what a block threw; stops the world, so that the others end
  Stop run(const Carry& work, AbortWord* abort, CarryHost& host,
           const std::function<void(const std::exception&)>& failed);

 private:
  class Block;
  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace chorale::hostrun
