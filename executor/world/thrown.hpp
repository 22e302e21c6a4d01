/// \file
/// What was thrown, for whoever cannot pass it on.
#pragma once

#include <exception>
#include <string>

namespace chorale::world {

/// In a catch block: what the exception says.
inline std::string thrown_text() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

}  // namespace chorale::world
