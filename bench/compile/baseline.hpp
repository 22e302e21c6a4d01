#pragma once
/// \file
/// Reads the CPU time and memory that MSCCL++'s DSL needed for the same programs.

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace chorale::bench {

struct BaselineRow {
  double cpu_seconds = 0, peak_megabytes = 0;
  uint64_t json_bytes = 0;
};

/// Maps a program and a number of ranks to their row.
using Baseline = std::map<std::pair<std::string, int>, BaselineRow>;

/// Reads a table with the columns program, n, cpu_s, wall_s, peak_rss_mb, json_bytes. It skips programs that
/// did not run.
/// \throws std::runtime_error if the file cannot be read
Baseline read_baseline(const std::string& path);

}  // namespace chorale::bench
