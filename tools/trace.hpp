/// \file
/// Traces of launches, for Perfetto and chrome://tracing.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "chorale/executor.hpp"

namespace chorale::tools {

/// What --trace FILE asks of the executor; "": nothing.
/// \throws Failure if the file could not be written, before anything runs
void trace_to(Config& config, const std::string& path);

/// What --trace FILE asks of the command line: a file that can be written; "": nothing.
/// \throws Failure if it could not be, before anything runs
void need_trace_file(const std::string& path);

/// Writes spans, in any order, as below. \param one_clock  of all ranks
void write_trace(const std::vector<TraceSpan>& spans, uint32_t ranks, const std::string& path,
                 bool one_clock = true);

/// Collective: writes what all ranks' executors, made with `config`, have traced to `path`, by rank 0. A rank
/// is a process of the trace, a thread block a thread; each span carries its launch and the author's line.
/// One event a line. On the CPU times are from the first span of all; clocks of different GPUs differ, so
/// there they are from the first span of each rank.
/// \throws RunError, on all ranks, if the file cannot be written or nothing was traced
void write_trace(World& world, const Executor& executor, const Config& config, const std::string& path);

/// What ranks have traced of a run that has failed, in which they cannot meet as write_trace() has them do.
/// Made before the ranks are started, which may be processes.
class StoppedTrace {
 public:
  StoppedTrace();

  /// A rank's part, launches that stopped included. What cannot be had or kept is left out.
  void add(const Executor& executor) const noexcept;

  /// Writes what ranks have added, when they have ended; without any, nothing.
  /// \throws Failure if the file cannot be written
  void write(const Plan& plan, const Config& config, const std::string& path) const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;  ///< of SentSpans
};

}  // namespace chorale::tools
