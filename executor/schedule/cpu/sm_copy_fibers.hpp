/// \file
/// The thread blocks of an SM copy are fibers on the CPU. They take turns on their lane's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chorale/device/deadline.hpp"
#include "chorale/device/group.hpp"

namespace chorale::hostrun {

/// The services that the fibers need from their lane.
class SmCopyHost {
 public:
  virtual ~SmCopyHost() = default;
  /// Returns when ready(state) holds, or when the lane has to stop: then the world's abort word says so.
  virtual void wait(bool (*ready)(const void*), const void* state) = 0;
  /// Called before each action that peers can see. A seed may let others go first here.
  virtual void step() = 0;
};

/// The fibers of one lane, kept from SM copy to SM copy.
class SmCopyFibers {
 public:
  SmCopyFibers();
  ~SmCopyFibers();
  SmCopyFibers(SmCopyFibers&&) noexcept;

  /// Runs body(group) for `blocks` blocks of one thread; returns when all have ended, with the largest of
  /// what they return.
  /// \param abort   the world's abort word
  /// \param failed  told what a block threw; stops the world, so that the others end
  Stop run(uint32_t blocks, const std::function<Stop(const Group&)>& body, AbortWord* abort, SmCopyHost& host,
           const std::function<void(const std::string& why)>& failed);

 private:
  class Block;
  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace chorale::hostrun
