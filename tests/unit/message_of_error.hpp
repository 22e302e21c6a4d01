#pragma once
// What a wrong call says.

#include <functional>
#include <string>

namespace chorale::test {

/// What a call that throws an Error says; "" if it throws nothing.
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
