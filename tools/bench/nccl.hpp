/// \file
/// NCCL as a thing to compare with: loaded when it is wanted, in its default mode.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "chorale/exchange.hpp"
#include "chorale/executor.hpp"

namespace chorale::tools {

/// NVLink multicast off, unless NCCL_NVLS_ENABLE says otherwise: call it before ranks start.
void quieten_nccl();

/// "NVLink multicast off", or who has it otherwise.
/// \param nvls  the variable NCCL_NVLS_ENABLE, null without
std::string multicast_words(const char* nvls);

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

  /// Enqueues messages as one group, as chorale::Exchange does.
  void exchange(std::span<const SendTo> sends, std::span<const RecvFrom> recvs, void* stream);

  std::string version() const;  ///< "2.28.9"

 private:
  struct State;
  explicit Nccl(std::unique_ptr<State>);
  std::unique_ptr<State> state_;
};

}  // namespace chorale::tools
