/// \file
/// The executor throws RunError when a run fails, and UsageError when a call is wrong.
#pragma once

#include <stdexcept>
#include <string>

#include "chorale/usage_error.hpp"

namespace chorale {

/// Reports that the machine or the run failed. The message holds the values and, if one is known, the remedy.
struct RunError : std::runtime_error {
  enum class Reason {
    timed_out,  ///< a wait reached its deadline; the message names the ranks that are missing, if known
    aborted,    ///< a rank called World::abort(); the message names the rank and its reason
    deadlock,   ///< no rank can go on; this is found without waiting for a deadline
    peer_lost,  ///< a peer's process died, or the peer has left the world
    mismatch,   ///< the ranks disagree, for example two jobs use one name, two processes have one rank, or
                ///< sizes differ
    resources,  ///< memory, shared memory or descriptors ran out
    other
  };

  RunError(Reason why, const std::string& message) : std::runtime_error(message), reason(why) {}

  Reason reason;
};

/// Returns the reason's name: "timed_out", "aborted", ...
constexpr const char* name(RunError::Reason reason) {
  switch (reason) {
    case RunError::Reason::timed_out:
      return "timed_out";
    case RunError::Reason::aborted:
      return "aborted";
    case RunError::Reason::deadlock:
      return "deadlock";
    case RunError::Reason::peer_lost:
      return "peer_lost";
    case RunError::Reason::mismatch:
      return "mismatch";
    case RunError::Reason::resources:
      return "resources";
    case RunError::Reason::other:
      return "other";
  }
  return "other";
}

}  // namespace chorale
