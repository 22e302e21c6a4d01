/// \file
/// Writes traces of launches, for Perfetto and chrome://tracing.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chorale/executor.hpp"

namespace chorale::tools {

/// Returns the event that names a rank, or one of its threads, in the trace.
nlohmann::ordered_json name_event(uint32_t rank, std::string name, std::optional<uint32_t> thread = {});

/// Sets up the executor's configuration for --trace FILE; does nothing for "". Call it before anything runs.
/// \throws Failure if the file cannot be written
void trace_to(Config& config, const std::string& path);

/// Checks that the file of --trace FILE can be written; does nothing for "". Call it before anything runs.
/// \throws Failure if it cannot be written
void need_trace_file(const std::string& path);

/// Writes spans, in any order, in the same form as write_trace() below.
/// \param backend  what the file says of its times: "cpu" or "cuda" if they were measured there, "simulated"
/// if
///   they are predicted. The ranks of all but "cuda" have the same clock
void write_trace(const std::vector<TraceSpan>& spans, uint32_t ranks, const std::string& path,
                 const std::string& backend);

/// Collective: rank 0 writes the traces of all ranks' executors, which were made with `config`, to `path`. In
/// the trace a rank is a process and a thread block is a thread. Each span carries its launch and the
/// author's line. Each event is one line. On the CPU times count from the first span of all ranks. Clocks of
/// different GPUs differ, so there times count from each rank's first span.
/// \throws RunError, on all ranks, if the file cannot be written or nothing was traced
void write_trace(World& world, const Executor& executor, const Config& config, const std::string& path);

/// Collects the ranks' traces of a run that has failed. The ranks can then no longer run the collective
/// write_trace(). Make it before the ranks start, because they may be processes.
class StoppedTrace {
 public:
  StoppedTrace();

  /// Adds a rank's part, with the launches that stopped. It leaves out spans that it cannot read or store.
  void add(const Executor& executor) const noexcept;

  /// Writes what the ranks have added; writes nothing if they have added nothing. Call it when they have
  /// ended.
  /// \throws Failure if the file cannot be written
  void write(const Plan& plan, const Config& config, const std::string& path) const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;  ///< holds SentSpans
};

}  // namespace chorale::tools
