/// \file
/// The ranks of a run, as threads or processes of this machine: started, watched and cleaned up.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "chorale/config.hpp"
#include "chorale/world.hpp"

namespace chorale::tools {

struct Launch {
  uint32_t ranks = 1;
  bool processes = false;                      ///< a process a rank; else threads of this one
  std::function<std::string()> progress = {};  ///< what is done so far, for processes
  /// Called all the while, by one thread, and once at the end; does not throw.
  std::function<void()> watch = {};
};

/// Runs `body` once a rank and waits for all of them.
/// \return why the run ended early: the cause among the ranks' errors, not an echo; "" if it did not
std::string run_ranks(const Launch&, const Config&, const std::function<void(World&)>& body);

}  // namespace chorale::tools
