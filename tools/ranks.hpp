/// \file
/// Starts, watches and cleans up the ranks of a run, which are threads or processes of this machine.
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
  std::function<std::string()> progress = {};  ///< says what is done so far, for processes
  /// One thread calls this all the while, and once at the end. It does not throw.
  std::function<void()> watch = {};
};

/// Runs `body` once for each rank and waits for all of them.
/// \return why the run ended early, that is the error that caused the others; "" if it did not
std::string run_ranks(const Launch&, const Config&, const std::function<void(World&)>& body);

}  // namespace chorale::tools
