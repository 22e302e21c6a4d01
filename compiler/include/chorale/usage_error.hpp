#pragma once
/// \file
/// Defines the exception of a call that was wrong.

#include <stdexcept>

namespace chorale {

/// The call was wrong: the caller can mend it without looking at the machine.
struct UsageError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

}  // namespace chorale
