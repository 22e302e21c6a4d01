// Serves functions that make, describe and end communicators.

#include <fmt/format.h>

#include <algorithm>
#include <chorale/invitation.hpp>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "environment.hpp"
#include "groups.hpp"
#include "handles.hpp"
#include "last_error.hpp"
#include "log.hpp"
#include "outcome.hpp"
#include "served.hpp"

namespace chorale::nccl::served {
namespace {

static_assert(Invitation::bytes <= sizeof(ncclUniqueId));

/// Returns the caller's configuration. Members that it does not have are not set.
/// \throws CallError if it is none
ncclConfig_t known_part(const ncclConfig_t* config) {
  // The caller's struct may be that of an earlier version, which was shorter.
  ncclConfig_t known = config_initializer;
  if (!config) return known;
  size_t size = 0;
  std::memcpy(&size, config, sizeof size);
  if (size < offsetof(ncclConfig_t, cgaClusterSize))
    throw CallError(ncclInvalidArgument, "config was not initialised with NCCL_CONFIG_INITIALIZER");
  std::memcpy(&known, config, std::min(size, sizeof known));
  if (known.magic != config_initializer.magic)
    throw CallError(ncclInvalidArgument, "config was not initialised with NCCL_CONFIG_INITIALIZER");
  return known;
}

/// Returns what the caller's configuration, the parent and the environment ask for.
/// \param parent  the communicator from which it is made; null: none
/// \throws CallError for values that NCCL does not allow
Asked asked_by(const ncclConfig_t* config, const Handle& parent) {
  const std::optional<bool> blocking = blocking_in_environment();
  const ncclConfig_t known = known_part(config);
  Asked asked = parent ? Asked{parent->blocking, parent->max_ctas} : Asked{};
  const auto is_set = [](int value) { return value != NCCL_CONFIG_UNDEF_INT; };
  if (is_set(known.blocking)) {
    if (known.blocking != 0 && known.blocking != 1)
      throw CallError(ncclInvalidArgument,
                      fmt::format("config.blocking is {}, but must be 0 or 1", known.blocking));
    asked.blocking = known.blocking == 1;
  }
  asked.blocking = blocking.value_or(asked.blocking);
  for (const auto& [name, value] :
       {std::pair("minCTAs", known.minCTAs), std::pair("maxCTAs", known.maxCTAs)}) {
    if (is_set(value) && value < 1)
      throw CallError(ncclInvalidArgument,
                      fmt::format("config.{} is {}, but must be at least 1", name, value));
  }
  if (is_set(known.maxCTAs)) {
    if (is_set(known.minCTAs) && known.minCTAs > known.maxCTAs)
      throw CallError(ncclInvalidArgument, fmt::format("config.minCTAs is {}, but maxCTAs is only {}",
                                                       known.minCTAs, known.maxCTAs));
    asked.max_ctas = uint32_t(known.maxCTAs);
  }
  return asked;
}

/// Makes a handle for a communicator that is to be made, and writes it to the caller's variable.
Handle handle_for(ncclComm_t* result, int rank, int ranks, int device, const Asked& asked) {
  const auto handle = std::make_shared<ncclComm>(rank, ranks, device, asked);
  *result = handles::add(handle);
  return handle;
}

ncclResult_t finish(const Outcome& outcome) {
  if (!outcome.good()) throw CallError(outcome.result, outcome.sentence);
  return outcome.result;
}

/// Returns the settings of a communicator.
/// \throws CallError if a variable says that GPUs cannot be used as Chorale uses them
Config config_of_communicator(const Asked& asked) {
  Config config = config_of_process();
  if (backend_of(config) == Backend::cuda) check_environment_of_gpus();
  limit_blocks(config, asked.max_ctas);
  return config;
}

/// Returns the settings of a communicator that is made from another one. It may have more thread blocks.
Config config_of_child(const Communicator& parent, const Asked& asked) {
  Config config = parent.config();
  config.max_blocks = config_of_process().max_blocks;
  limit_blocks(config, asked.max_ctas);
  return config;
}

ncclResult_t join(Function function, ncclComm_t* result, int ranks, const ncclUniqueId& id, int rank,
                  const ncclConfig_t* with) {
  *result = nullptr;
  const Asked asked = asked_by(with, nullptr);
  const std::optional<Invitation> invitation =
      Invitation::decode(std::as_bytes(std::span(id.internal)).first(Invitation::bytes));
  if (!invitation) {
    throw CallError(
        ncclInvalidArgument,
        "the unique id was not made by ncclGetUniqueId() of this library. All ranks must load the same "
        "libnccl.so.2");
  }
  const Config config = config_of_communicator(asked);
  std::shared_ptr<Device> device = current_device(backend_of(config));
  Handle handle = handle_for(result, rank, ranks, device->number(), asked);
  return finish(group::add(Init{function, result, std::move(handle), config, std::move(device),
                                [=, options = config.join()]() -> std::optional<World> {
                                  return World::join(*invitation, rank, ranks, options);
                                }}));
}

}  // namespace

ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  const auto bytes = Invitation::make().encode();
  *uniqueId = {};
  std::memcpy(uniqueId->internal, bytes.data(), bytes.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return join(Function::ncclCommInitRank, comm, nranks, commId, rank, nullptr);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                    ncclConfig_t* config) {
  return join(Function::ncclCommInitRankConfig, comm, nranks, commId, rank, config);
}

// NCCL uses several ids to spread the ranks that connect. Chorale needs only one.
ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId,
                                      ncclUniqueId* commIds, ncclConfig_t* config) {
  if (nId < 1 || nId > nranks)
    throw CallError(ncclInvalidArgument,
                    fmt::format("nId is {}, but must be from 1 to the {} ranks", nId, nranks));
  return join(Function::ncclCommInitRankScalable, newcomm, nranks, commIds[0], myrank, config);
}

ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  if (ndev == 0) return ncclSuccess;
  const Config config = config_of_communicator({});
  std::vector<World> worlds = World::local(ndev, config.local());
  std::vector<Init> all;
  for (int rank = 0; rank < ndev; ++rank) {
    std::shared_ptr<Device> device = device_of_number(backend_of(config), devlist ? devlist[rank] : rank);
    const int number = device->number();
    const auto world = std::make_shared<World>(std::move(worlds[size_t(rank)]));
    all.push_back({Function::ncclCommInitAll, nullptr,
                   std::make_shared<ncclComm>(rank, ndev, number, Asked{}), config, std::move(device),
                   [world]() -> std::optional<World> { return std::move(*world); }});
  }
  for (int rank = 0; rank < ndev; ++rank) comm[rank] = handles::add(all[size_t(rank)].handle);
  const Outcome outcome = run(all);
  if (!outcome.good()) {
    for (int rank = 0; rank < ndev; ++rank) {
      outcome_of([&] { handles::take(comm[rank]); });
      comm[rank] = nullptr;
    }
  }
  return finish(outcome);
}

// The calls of the communicator that follow are refused.
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Handle handle = handles::find(comm);
  const std::shared_ptr<Communicator> communicator = communicator_for_call(handle);
  communicator->device().wait();
  communicator->check();
  const std::lock_guard<std::mutex> lock(handle->mutex);
  handle->finalized = true;
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const Handle handle = handles::take(comm);
  std::shared_ptr<Communicator> communicator;
  bool failed = false;
  {
    const std::lock_guard<std::mutex> lock(handle->mutex);
    communicator = std::move(handle->communicator);
    handle->ended = true;
    failed = handle->outcome.result != ncclSuccess;
  }
  if (!communicator) return ncclSuccess;  // it is still being made, or could not be made
  if (failed) {
    communicator->abort(
        fmt::format("rank {} destroyed the communicator after an error", communicator->rank()));
  } else {
    close(std::move(communicator));
  }
  return ncclSuccess;
}

// The abort ends calls that still run. The communicator lives until the last of them has returned.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const Handle handle = handles::take(comm);
  std::shared_ptr<Communicator> communicator;
  {
    const std::lock_guard<std::mutex> lock(handle->mutex);
    communicator = std::move(handle->communicator);
    handle->ended = true;
  }
  if (communicator) communicator->abort(fmt::format("rank {} called ncclCommAbort()", communicator->rank()));
  return ncclSuccess;
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  if (revokeFlags != NCCL_REVOKE_DEFAULT)
    throw CallError(ncclInvalidArgument, fmt::format("revokeFlags is {}, but must be 0", revokeFlags));
  const Handle handle = handles::find(comm);
  const std::shared_ptr<Communicator> communicator = communicator_for_call(handle);
  const std::string why = fmt::format("rank {} called ncclCommRevoke()", communicator->rank());
  communicator->abort(why);
  const std::lock_guard<std::mutex> lock(handle->mutex);
  handle->outcome = {ncclInvalidUsage, why + ". Shrink the communicator, or abort it"};
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config) {
  *newcomm = nullptr;
  if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
    throw CallError(ncclInvalidArgument,
                    fmt::format("color is {}, but must be NCCL_SPLIT_NOCOLOR or at least 0", color));
  const Handle parent = handles::find(comm);
  const Asked asked = asked_by(config, parent);
  const std::shared_ptr<Communicator> communicator = communicator_for_call(parent);
  const bool taken = color != NCCL_SPLIT_NOCOLOR;
  const std::shared_ptr<Device> device =
      device_of_number(backend_of(communicator->config()), communicator->device().number());
  Handle handle = taken ? handle_for(newcomm, -1, -1, parent->device, asked) : nullptr;
  return finish(group::add(
      Init{Function::ncclCommSplit, newcomm, std::move(handle), config_of_child(*communicator, asked), device,
           [communicator, taken, color, key]() {
             return communicator->world().split(taken ? std::optional<int>(color) : std::nullopt, key);
           },
           communicator}));
}

// Ranks that have died are left out too.
ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                            ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags) {
  *newcomm = nullptr;
  if (shrinkFlags != NCCL_SHRINK_DEFAULT && shrinkFlags != NCCL_SHRINK_ABORT)
    throw CallError(ncclInvalidArgument,
                    fmt::format("shrinkFlags is {}, but must be 0 or NCCL_SHRINK_ABORT", shrinkFlags));
  const Handle parent = handles::find(comm);
  const Asked asked = asked_by(config, parent);
  std::shared_ptr<Communicator> communicator;
  if (shrinkFlags == NCCL_SHRINK_ABORT) {
    // The communicator may have failed already.
    const std::lock_guard<std::mutex> lock(parent->mutex);
    communicator = parent->communicator;
    if (!communicator) throw CallError(ncclInvalidUsage, "the communicator was never made");
  } else {
    communicator = communicator_for_call(parent);
  }
  const int ranks = communicator->ranks(), own = communicator->rank();
  if (excludeRanksCount < 1 || excludeRanksCount >= ranks) {
    throw CallError(ncclInvalidArgument,
                    fmt::format("excludeRanksCount is {}, but must be from 1 to one less than the {} ranks",
                                excludeRanksCount, ranks));
  }
  const std::vector<int> without(excludeRanksList, excludeRanksList + excludeRanksCount);
  for (const int rank : without) {
    if (rank < 0 || rank >= ranks || rank == own) {
      throw CallError(ncclInvalidArgument,
                      fmt::format("rank {} of {} ranks cannot leave out rank {}", own, ranks, rank));
    }
  }
  const std::shared_ptr<Device> device =
      device_of_number(backend_of(communicator->config()), communicator->device().number());
  Handle handle = handle_for(newcomm, -1, -1, parent->device, asked);
  Init init{Function::ncclCommShrink,
            newcomm,
            std::move(handle),
            config_of_child(*communicator, asked),
            device,
            [communicator, without]() { return communicator->world().survivors(without); },
            communicator};
  init.aborts_parent = shrinkFlags == NCCL_SHRINK_ABORT;
  return finish(group::add(std::move(init)));
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  const Handle handle = handles::find(comm);
  std::shared_ptr<Communicator> communicator;
  {
    const std::lock_guard<std::mutex> lock(handle->mutex);
    if (handle->outcome.good()) communicator = handle->communicator;
    *asyncError = handle->outcome.result;
  }
  if (!communicator) return ncclSuccess;
  const Outcome outcome = outcome_of([&] { communicator->check(); });
  if (outcome.good()) return ncclSuccess;
  note_failure(handle, outcome);
  set_last_error(fmt::format("ncclCommGetAsyncError: {}", outcome.sentence));
  *asyncError = outcome.result;
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  const Handle handle = handles::find(comm);
  const std::lock_guard<std::mutex> lock(handle->mutex);
  *count = handle->ranks;
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  *device = handles::find(comm)->device;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  const Handle handle = handles::find(comm);
  const std::lock_guard<std::mutex> lock(handle->mutex);
  *rank = handle->rank;
  return ncclSuccess;
}

}  // namespace chorale::nccl::served
