/// \file
/// What a schedule takes of this machine, looked at before anything is allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "backend.hpp"

namespace chorale::hostrun {

/// What there is for one rank; nothing: it is not known.
struct Resources {
  std::string where;                         ///< "GPU 1"
  std::optional<uint64_t> free_bytes;        ///< of memory
  std::optional<uint64_t> most_lanes;        ///< beside "main"
  std::optional<uint64_t> most_blocks = {};  ///< of carries, on all lanes together
};

/// Bytes that the binding of this rank allocates: of tensors that the caller has not given, and of links.
uint64_t bytes_to_allocate(const Bound&);

/// \throws RunError resources, with what is needed, what there is, and the largest tensors
void check_resources(const Bound&, const Resources&);

/// Of this host: what Linux calls available, and threads.
Resources host_resources();
/// Of the current device. \throws RunError resources if its streams cannot wait for words in memory
Resources cuda_resources();

}  // namespace chorale::hostrun
