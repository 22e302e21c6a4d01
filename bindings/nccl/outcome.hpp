#pragma once

#include <stdexcept>
#include <string>

#include "abi.hpp"

namespace chorale::nccl {

/// Says how a call ended.
struct Outcome {
  ncclResult_t result = ncclSuccess;
  std::string sentence = {};  ///< Says what is wrong, why, and the remedy. Empty if the call succeeded.

  bool good() const { return result == ncclSuccess || result == ncclInProgress; }
};

/// Ends a call with a result that the thrower chose.
struct CallError : std::runtime_error {
  CallError(ncclResult_t with, const std::string& sentence) : std::runtime_error(sentence), result(with) {}
  ncclResult_t result;
};

/// Returns the outcome for the exception that is being handled.
Outcome outcome_of_exception();

/// Runs `body` and returns its outcome.
template <class Body>
Outcome outcome_of(const Body& body) {
  try {
    body();
    return {};
  } catch (...) {
    return outcome_of_exception();
  }
}

}  // namespace chorale::nccl
