#pragma once
/// \file
/// Measures the CPU time and memory of compiling one program.

#include <cstdint>
#include <string>

namespace chorale::bench {

/// The resources that one process needed. CPU seconds are the kernel's and its own.
struct Sample {
  double record = 0, compile = 0, write = 0;
  uint64_t calls = 0;       ///< operations recorded, of all instances
  uint64_t ops = 0;         ///< operations of the plan
  uint64_t operands = 0;    ///< buffers and ids of all operations
  uint64_t json_bytes = 0;  ///< the file's size
  uint64_t peak_bytes = 0;  ///< the most memory of the whole process
  double cpu() const { return record + compile + write; }
};

/// Records, checks, rewrites and writes a registered program in a process of its own. Returns the run with
/// the least CPU time of at least five, or of fewer if they take long.
/// \throws std::runtime_error if it has findings or the process ends early
Sample measure(const std::string& program, int ranks);

/// Times for reading a plan from its file, in seconds of wall time, each the least of many.
struct LoadTimes {
  uint64_t json_bytes = 0, cbor_bytes = 0;
  double json = 0, cbor = 0, json_rank = 0, cbor_rank = 0;  ///< `_rank`: for one rank alone
};

/// Measures how long a program's plan takes to read.
/// \throws std::runtime_error
LoadTimes measure_loading(const std::string& program, int ranks);

}  // namespace chorale::bench
