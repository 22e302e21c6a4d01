/// \file
/// Checks what a schedule needs of this machine before anything is allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "backend.hpp"

namespace chorale::hostrun {

/// The resources of one rank; an empty member is not known.
struct Resources {
  std::string where;                         ///< for example "GPU 1"
  std::optional<uint64_t> free_bytes;        ///< free memory
  std::optional<uint64_t> most_lanes;        ///< beside "main"
  std::optional<uint64_t> most_blocks = {};  ///< blocks of SM copies, on all lanes together
};

/// Returns the bytes that the binding of this rank allocates: tensors that the caller has not given, and
/// links.
uint64_t bytes_to_allocate(const Bound&);

/// Checks that the resources are enough for the schedule.
/// \throws RunError resources if not, with what is needed, what there is, and the largest tensors
void check_resources(const Bound&, const Resources&);

/// Returns the resources of this host: the memory that Linux calls available, and threads.
Resources host_resources();
/// Returns the resources of the current device.
/// \throws RunError resources if its streams cannot wait for words in memory
Resources cuda_resources();

}  // namespace chorale::hostrun
