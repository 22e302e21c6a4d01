/// \file
/// Thrown describes an exception, for code that cannot rethrow it.
#pragma once

#include <exception>
#include <new>
#include <optional>
#include <string>

#include "chorale/error.hpp"

namespace chorale::system {

/// Returns the text of the current exception. Call it in a catch block.
inline std::string thrown_text() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

/// Describes an exception for other ranks. If it is not a RunError, its reason is `resources` if memory ran
/// out, else `other`.
struct Thrown {
  std::string text;
  bool usage = false;  ///< it is a UsageError
  RunError::Reason reason = RunError::Reason::other;
};

/// Runs `step` and returns a description of what it throws; nothing if it does not throw.
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

/// Returns a description of the current exception. Call it in a catch block.
inline Thrown thrown_now() {
  return *thrown_by([] { throw; });
}

/// Returns the text that the other ranks of a join get for an exception of `rank`. A text that already names
/// ranks stays as it is.
inline std::string told_text(int rank, const Thrown& thrown) {
  switch (thrown.reason) {
    case RunError::Reason::mismatch:
    case RunError::Reason::timed_out:
    case RunError::Reason::peer_lost:
      return thrown.text;
    default:
      return "rank " + std::to_string(rank) + ": " + thrown.text;
  }
}

}  // namespace chorale::system
