#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "chorale/error.hpp"

namespace chorale::system {

/// Starts a thread.
/// \param what  what uses the thread, such as "a proxy"
/// \throws RunError resources if the process can have no more threads
template <class Body>
std::thread start_thread(const char* what, Body&& body) {
  try {
    return std::thread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    throw RunError(RunError::Reason::resources,
                   std::string("no thread for ") + what + ": " + error.what() +
                       "; use fewer, or raise the limit of processes (ulimit -u) or of the control group");
  }
}

}  // namespace chorale::system
