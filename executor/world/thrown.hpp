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

/// As thrown_by(), in a catch block.
inline Thrown thrown_now() {
  return *thrown_by([] { throw; });
}

/// What the others of a join hear of what `rank` has thrown. A text that names ranks itself stays as it is.
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

}  // namespace chorale::world
