/// \file
/// Starts, watches and ends the ranks of a run, which are threads or processes of this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "chorale/config.hpp"
#include "chorale/world.hpp"

namespace chorale::tools {

struct Launch {
  uint32_t ranks = 1;
  bool processes = false;                      ///< true: one process per rank; else threads of this process
  std::function<std::string()> progress = {};  ///< says what is done so far, for processes
  /// One thread calls this repeatedly during the run, and once at the end. It does not throw.
  std::function<void()> watch = {};
};

/// Runs `body` once for each rank and waits for all of them.
/// \return why the run ended early, as the error that caused the others; "" if it did not end early
std::string run_ranks(const Launch&, const Config&, const std::function<void(World&)>& body);

}  // namespace chorale::tools
