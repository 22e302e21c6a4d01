#pragma once

#include <cstdint>

#include "abi.hpp"
#include "chorale/types.hpp"

namespace chorale::nccl {

/// Returns the bytes of an element.
/// \throws CallError if NCCL has no such type
uint64_t element_bytes(ncclDataType_t type);

/// Returns Chorale's word for a type.
/// \throws CallError if NCCL has no such type
const char* type_word(ncclDataType_t type);

/// Says which type and operator of Chorale reduce elements as NCCL does.
struct Reduction {
  DType dtype;
  ReduceOp op;
};

/// Returns how Chorale reduces elements of `type` by `op`, which is one of NCCL's own operators.
/// \throws CallError if NCCL has no such type
Reduction reduction_of(ncclDataType_t type, ncclRedOp_t op);

}  // namespace chorale::nccl
