#pragma once
// Gives the message of a wrong call as text.

#include <functional>
#include <string>

namespace chorale::test {

/// Returns the message of the Error that a call throws; "" if it throws nothing.
template <class Error>
std::string message_of_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace chorale::test
