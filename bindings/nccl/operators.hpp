#pragma once

#include <chorale/factor.hpp>
#include <cstdint>
#include <map>
#include <mutex>

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

/// Holds the operators that a program has created for one communicator. Such an operator multiplies the input
/// of each rank by that rank's factor, and then sums. Several threads may use this object at the same time.
class CreatedOperators {
 public:
  /// Adds an operator, and returns its number. It is above the numbers of NCCL's own operators.
  ncclRedOp_t add(ncclDataType_t type, const Factor& factor);

  /// Removes an operator.
  /// \throws CallError if there is no such operator
  void remove(ncclRedOp_t op);

  /// Returns the factor of an operator.
  /// \throws CallError if there is no such operator, or if it is for elements of another type
  Factor factor(ncclRedOp_t op, ncclDataType_t type) const;

 private:
  struct Created {
    ncclDataType_t type;
    Factor factor;
  };

  mutable std::mutex mutex_;
  std::map<int, Created> created_;
};

}  // namespace chorale::nccl
