/// \file
/// On the CPU the thread blocks of an SM copy are fibers. They take turns on the thread of their stream.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chorale/device/deadline.hpp"
#include "chorale/device/group.hpp"

namespace chorale::schedule_run {

/// Provides the services that the fibers need from their stream.
class SmCopyHost {
 public:
  virtual ~SmCopyHost() = default;
  /// Returns when ready(state) holds, or when the stream has to stop; then the world's abort word says so.
  virtual void wait(bool (*ready)(const void*), const void* state) = 0;
  /// Streams call this before each action that peers can see. With a seed, others may run first here.
  virtual void step() = 0;
};

/// Holds the fibers of one stream, which are reused for each SM copy.
class SmCopyFibers {
 public:
  SmCopyFibers();
  ~SmCopyFibers();
  SmCopyFibers(SmCopyFibers&&) noexcept;

  /// Runs body(group) for `blocks` blocks of one thread. Returns when all have ended, with the largest of
  /// their results.
  /// \param abort the world's abort word
  /// \param failed called with the exception of a block; stops the world, so that the others end
  Stop run(uint32_t blocks, const std::function<Stop(const Group&)>& body, AbortWord* abort, SmCopyHost& host,
           const std::function<void(const std::string& why)>& failed);

 private:
  class Block;
  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace chorale::schedule_run
