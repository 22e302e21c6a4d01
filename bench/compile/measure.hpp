#pragma once
/// \file
/// Measures the CPU time and memory of compiling one program.

#include <cstdint>
#include <string>

namespace chorale::bench {

/// Holds the resources that one process needed. CPU seconds include the kernel's.
struct Sample {
  double record = 0, compile = 0, write = 0;
  uint64_t calls = 0;       ///< operations recorded, of all instances
  uint64_t ops = 0;         ///< operations of the plan
  uint64_t operands = 0;    ///< buffers and ids of all operations
  uint64_t json_bytes = 0;  ///< the size of the file
  uint64_t peak_bytes = 0;  ///< the peak memory of the whole process
  double cpu() const { return record + compile + write; }
};

/// Records, checks, rewrites and writes a registered program in a separate process. Returns the run with the
/// least CPU time of at least five runs, or of fewer if they take long.
/// \throws std::runtime_error if the program has findings or the process ends early
Sample measure(const std::string& program, int ranks);

/// Holds times for reading a plan from its file, in seconds of wall time, each the least of many.
struct LoadTimes {
  uint64_t json_bytes = 0, cbor_bytes = 0;
  double json = 0, cbor = 0, json_rank = 0, cbor_rank = 0;  ///< `_rank`: for one rank alone
};

/// Measures how long it takes to read a program's plan.
/// \throws std::runtime_error if the plan cannot be made or read
LoadTimes measure_loading(const std::string& program, int ranks);

}  // namespace chorale::bench
