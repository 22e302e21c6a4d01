#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "abi.hpp"

namespace chorale::nccl {

/// Holds what the arguments of a call already decide, without a communicator.
struct Verdict {
  ncclResult_t result;
  std::string sentence;  ///< Says what is wrong. Empty if the call succeeds.
};
using Checked = std::optional<Verdict>;

/// Finds the first null pointer. `names` has the names of the pointers, separated by commas.
Checked first_null(std::string_view names, const void* const* pointers, size_t count);

template <class... Pointers>
Checked first_null(std::string_view names, Pointers... pointers) {
  const void* const all[] = {pointers..., nullptr};
  return first_null(names, all, sizeof...(pointers));
}

/// The checks that functions.def names. Each takes all arguments of the functions that it checks.
namespace check {

/// Accepts any arguments.
template <class... Arguments>
Checked any(const Arguments&...) {
  return std::nullopt;
}

/// Wants a rank from 0 to the number of ranks.
Checked rank_of_new(const ncclComm_t* comm, int ranks, const ncclUniqueId& id, int rank);
Checked rank_of_new(const ncclComm_t* comm, int ranks, const ncclUniqueId& id, int rank,
                    const ncclConfig_t* config);
Checked rank_of_new(const ncclComm_t* comm, int ranks, int rank, int ids, const ncclUniqueId* all_ids,
                    const ncclConfig_t* config);

/// Wants a number of devices that is not negative.
Checked number_of_devices(const ncclComm_t* comm, int devices, const int* list);

/// Succeeds without a communicator, because there is nothing to destroy then.
Checked no_communicator(ncclComm_t comm);

/// Wants an operator that a program created, and the communicator for which it was created.
Checked operator_to_destroy(ncclRedOp_t op, ncclComm_t comm);

}  // namespace check
}  // namespace chorale::nccl
