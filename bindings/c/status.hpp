/// \file
/// Turns exceptions into the C API's status. No exception leaves a call, and its message is kept for
/// chorale_last_error().
#pragma once

#include <stdexcept>
#include <string>

#include "chorale/chorale.h"

namespace chorale::c {

/// Reports a failure that has no exception type of its own in C++.
struct StatusError : std::runtime_error {
  StatusError(chorale_status of, const std::string& message) : std::runtime_error(message), status(of) {}

  chorale_status status;
};

/// Keeps the message of the exception that is being handled, and returns its status.
chorale_status note_error(const char* function) noexcept;

/// Runs the body of a function of the API, and returns its status.
template <class Body>
chorale_status guarded(const char* function, const Body& body) noexcept {
  try {
    body();
    return CHORALE_OK;
  } catch (...) {
    return note_error(function);
  }
}

}  // namespace chorale::c
