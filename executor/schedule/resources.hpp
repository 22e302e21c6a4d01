/// \file
/// These functions check the resources that a schedule needs before anything is allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "backend.hpp"

namespace chorale::schedule_run {

/// Lists the resources of one rank; an empty member is unknown.
struct Resources {
  std::string where;                     ///< for example "GPU 1"
  std::optional<uint64_t> free_bytes;    ///< free memory
  std::optional<uint64_t> most_streams;  ///< besides "main"
};

/// Returns the bytes that the binding of this rank allocates: the tensors that the caller has not given.
uint64_t bytes_to_allocate(const Bound&);

/// Checks that the resources are enough for the schedule.
/// \throws RunError resources if not, with the need, the available amount and the largest tensors
void check_resources(const Bound&, const Resources&);

/// Returns the resources of this host: the memory that Linux reports as available, and threads.
Resources host_resources();
/// Returns the resources of the current device.
/// \throws RunError resources if its streams cannot wait for words in memory
Resources cuda_resources();

}  // namespace chorale::schedule_run
