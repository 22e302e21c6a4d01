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

/// The rows by program and number of ranks.
using Baseline = std::map<std::pair<std::string, int>, BaselineRow>;

/// Reads a table with the columns program, n, cpu_s, wall_s, peak_rss_mb, json_bytes. It leaves out the
/// programs that did not run.
/// \throws std::runtime_error
Baseline read_baseline(const std::string& path);

}  // namespace chorale::bench
