#pragma once

#include <chorale/factor.hpp>
#include <map>
#include <mutex>

#include "abi.hpp"

namespace chorale::nccl {

/// Holds the operators that a program has created for one communicator. Each sums, and multiplies every
/// rank's input by a factor first. Several threads may use it at the same time.
class CreatedOperators {
 public:
  /// Returns the number of the operator, which is above those of NCCL's own operators.
  ncclRedOp_t add(ncclDataType_t type, const Factor& factor);

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
