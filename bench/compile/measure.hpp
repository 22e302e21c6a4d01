#pragma once
/// \file
/// CPU time and memory of compiling one program.

#include <cstdint>
#include <string>

namespace chorale::bench {

/// What one process needed. CPU seconds are the kernel's and its own.
struct Sample {
  double record = 0, compile = 0, write = 0;
  uint64_t calls = 0;       ///< operations recorded, of all instances
  uint64_t ops = 0;         ///< operations of the plan
  uint64_t operands = 0;    ///< of all of them: buffers and ids
  uint64_t json_bytes = 0;  ///< of the file
  uint64_t peak_bytes = 0;  ///< of memory, of the whole process
  double cpu() const { return record + compile + write; }
};

/// Records, checks, rewrites and writes a registered program in a process of its own; the least CPU time of
/// at least five, unless they take long. \throws std::runtime_error if it has findings or the process ends
/// early
Sample measure(const std::string& program, int ranks);

/// How long a plan takes from its file, in seconds of wall time: the least of many.
struct LoadTimes {
  uint64_t json_bytes = 0, cbor_bytes = 0;
  double json = 0, cbor = 0, json_rank = 0, cbor_rank = 0;  ///< `_rank`: for one rank alone
};

/// \throws std::runtime_error
LoadTimes measure_loading(const std::string& program, int ranks);

}  // namespace chorale::bench
