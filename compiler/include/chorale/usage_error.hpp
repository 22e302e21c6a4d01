#pragma once
/// \file
/// This header defines the exception for wrong calls.

#include <stdexcept>

namespace chorale {

/// Reports that a call was wrong. The caller can fix it without looking at the machine.
struct UsageError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

}  // namespace chorale
