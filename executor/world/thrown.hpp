/// \file
/// What was thrown, for whoever cannot pass it on.
#pragma once

#include <exception>
#include <new>
#include <optional>
#include <string>

#include "chorale/error.hpp"

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

/// As other ranks are told of it. What is no RunError has the reason `resources` if memory ran out, else
/// `other`.
struct Thrown {
  std::string text;
  bool usage = false;  ///< a UsageError
  RunError::Reason reason = RunError::Reason::other;
};

/// What `step` throws; nothing if it works.
template <class Step>
std::optional<Thrown> thrown_by(const Step& step) {
  try {
    step();
    return std::nullopt;
  } catch (const RunError& failed) {
    return Thrown{failed.what(), false, failed.reason};
  } catch (const std::bad_alloc&) {
    return Thrown{"out of memory", false, RunError::Reason::resources};
  } catch (const UsageError& wrong) {
    return Thrown{wrong.what(), true};
  } catch (...) {
    return Thrown{thrown_text()};
  }
}

}  // namespace chorale::world
