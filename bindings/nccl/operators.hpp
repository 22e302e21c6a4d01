#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "abi.hpp"
#include "chorale/types.hpp"

namespace chorale::nccl {

/// Returns the bytes of an element.
/// \throws CallError if NCCL has no such type
uint64_t element_bytes(ncclDataType_t type);

/// Says which type and operator of Chorale reduce elements as NCCL does.
struct Reduction {
  DType dtype;
  ReduceOp op;
};

/// Returns how Chorale reduces elements of `type` by `op`; nothing if it cannot, and then `why` says so.
/// \throws CallError if NCCL has no such type or operator
std::optional<Reduction> reduction_of(ncclDataType_t type, ncclRedOp_t op, std::string* why);

}  // namespace chorale::nccl
