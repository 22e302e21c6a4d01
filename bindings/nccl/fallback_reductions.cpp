// Gives the fallback reductions that Chorale does not have.

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <type_traits>

#include "calls.hpp"
#include "communicator.hpp"
#include "fallback.hpp"
#include "outcome.hpp"

namespace chorale::nccl {

ncclComm_t Communicator::of_fallback() {
  if (fallback_) return fallback_;
  const auto get_id = fallback::find<ncclResult_t(ncclUniqueId*)>(Function::ncclGetUniqueId);
  const auto init =
      fallback::find<ncclResult_t(ncclComm_t*, int, ncclUniqueId, int)>(Function::ncclCommInitRank);
  if (!get_id || !init)
    throw CallError(ncclInvalidUsage, "the fallback cannot make communicators. " +
                                          fallback::remedy(Function::ncclCommInitRank));
  ncclUniqueId id{};
  const ncclResult_t got = rank() == 0 ? get_id(&id) : ncclSuccess;
  world_.agree(got == ncclSuccess
                   ? std::nullopt
                   : std::optional(fmt::format("the fallback returns {} from ncclGetUniqueId", int(got))));
  const auto all = world_.allgather(std::as_bytes(std::span(&id, 1)));
  std::memcpy(&id, all[0].data(), sizeof id);
  const ncclResult_t made = init(&fallback_, ranks(), id, rank());
  if (made != ncclSuccess) throw CallError(made, "the fallback cannot make a communicator for this call");
  return fallback_;
}

/// Gives the fallback a reduction that Chorale does not have.
void Communicator::run_in_fallback(const Task& task) {
  const ncclComm_t comm = of_fallback();
  change_count(task.function, Answer::served, Answer::fallback);
  const auto call = [&](auto signature, auto... arguments) {
    return fallback::find<std::remove_pointer_t<decltype(signature)>>(task.function)(arguments...);
  };
  using Whole =
      ncclResult_t (*)(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);
  using Rooted = ncclResult_t (*)(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t,
                                  cudaStream_t);
  const ncclResult_t result =
      task.function == Function::ncclReduce
          ? call(Rooted(), task.send, task.recv, task.count, task.type, task.op, task.root, comm, task.stream)
          : call(Whole(), task.send, task.recv, task.count, task.type, task.op, comm, task.stream);
  if (result != ncclSuccess) throw CallError(result, "the fallback, which gets this call, returns an error");
}

}  // namespace chorale::nccl
