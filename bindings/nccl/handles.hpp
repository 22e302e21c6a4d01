#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "abi.hpp"
#include "communicator.hpp"
#include "outcome.hpp"

namespace chorale::nccl {

/// Holds what the caller's configuration asks for.
struct Asked {
  bool blocking = true;
  uint32_t max_ctas = 0;  ///< 0: any number
};

/// This is the object behind ncclComm_t. A program gets it before its communicator exists, if it does not
/// wait.
struct ncclComm {
  ncclComm(int its_rank, int its_ranks, int its_device, const Asked& of)
      : device(its_device), blocking(of.blocking), max_ctas(of.max_ctas), rank(its_rank), ranks(its_ranks) {}

  const int device;
  const bool blocking;
  const uint32_t max_ctas;   ///< of its configuration, or that of its parent; 0: any number
  mutable std::mutex mutex;  ///< guards the members below
  int rank, ranks;           ///< -1 while the communicator is being made by a split or a shrink
  Outcome outcome{ncclInProgress, "the communicator is still being made"};
  /// This pointer is null until the communicator is made. The communicator's memory is freed after its last
  /// use, and after the last use of its other ranks in this process.
  std::shared_ptr<Communicator> communicator;
  bool finalized = false;
  bool ended = false;  ///< destroyed or aborted
};
using Handle = std::shared_ptr<ncclComm>;

/// The communicators of this process.
namespace handles {

/// Makes the handle valid.
ncclComm_t add(const Handle& handle);

/// \throws CallError if there is no such communicator, for example because it was destroyed
Handle find(ncclComm_t comm);

/// Makes the handle invalid, and returns what it stood for.
/// \throws CallError as find()
Handle take(ncclComm_t comm);

}  // namespace handles

/// Returns the communicator for a call.
/// \throws CallError if it is still being made, has failed, or was finalized
std::shared_ptr<Communicator> communicator_for_call(const Handle& handle);

/// Records that the communicator has failed, unless the outcome leaves it usable.
void note_failure(const Handle& handle, const Outcome& outcome);

/// Makes one rank of a communicator.
struct Init {
  Function function;
  ncclComm_t* result = nullptr;  ///< the caller's variable
  Handle handle;                 ///< null if this rank takes part, but gets no communicator
  Config config;
  std::shared_ptr<Device> device;
  std::function<std::optional<World>()> join;  ///< collective over the ranks
  std::shared_ptr<Communicator> parent = {};   ///< the communicator from which it is made; null: none
  uint64_t turn = 0;                           ///< of the parent's Turns
  bool aborts_parent = false;                  ///< before its turn, so that earlier turns end
};

/// Makes communicators, each in a thread of its own if there are several, and waits for those that block.
/// Returns ncclInProgress if one of them does not block.
Outcome run(std::vector<Init> all);

/// Closes a communicator of this process: it waits until the work of all ranks has ended, and frees its
/// memory. This happens in a thread of its own, because other ranks may close later in the calling thread.
/// The call waits for the end for a few seconds if no other rank is in this process.
void close(std::shared_ptr<Communicator> communicator);

}  // namespace chorale::nccl
