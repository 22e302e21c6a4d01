/// \file
/// NCCL as a thing to compare with: loaded when it is wanted, in its default mode.
#pragma once

#include <memory>
#include <string>

#include "chorale/executor.hpp"

namespace chorale::tools {

/// NVLink multicast off, unless NCCL_NVLS_ENABLE says otherwise: call it before ranks start.
void quieten_nccl();

/// One rank's communicator.
class Nccl {
 public:
  /// Collective over the world, through which NCCL meets. Null on all ranks if it cannot be had on one, with
  /// `why`.
  /// \throws RunError if the world has stopped
  static std::unique_ptr<Nccl> join(World&, std::string& why);
  ~Nccl();

  /// \return why not; "" if it can
  static std::string refuses(const std::string& collective, bool in_place, DType);

  /// Enqueues one call.
  /// \param sizes  bytes of this rank's input and output
  void enqueue(const std::string& collective, const void* in, void* out, MessageSizes sizes, DType, ReduceOp,
               void* stream);

  /// Enqueues a send to a peer, a receive from it, or both as one; null: not that one.
  void exchange(const void* in, void* out, uint64_t bytes, int peer, void* stream);

  std::string version() const;  ///< "2.28.9"

 private:
  struct State;
  explicit Nccl(std::unique_ptr<State>);
  std::unique_ptr<State> state_;
};

}  // namespace chorale::tools
