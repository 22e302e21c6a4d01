/// \file
/// Finds the GPUs of this machine, as the driver describes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chorale::tools {

struct GpuFacts {
  std::string name, bus;  ///< "NVIDIA H200", "0000:3B:00.0"
  int capability = 0;     ///< 90 for sm_90
  int sms = 0, threads_per_sm = 0;
  uint64_t memory = 0;
  bool ipc = false;       ///< a process can open memory and events of another one
  bool vmm = false;       ///< virtual memory management
  bool posix_fd = false;  ///< its allocations can be POSIX file descriptors
  bool fabric = false;    ///< its allocations can be fabric handles
  bool multicast = false;
  bool prohibited = false;  ///< the compute mode allows no process to use it
  // These come from the management library (NVML); without it they have no value.
  std::optional<uint64_t> free_memory;
  std::optional<int> nvlinks;  ///< links that are up
};

struct GpusFound {
  std::string driver;        ///< "CUDA 13.0", with the management library "CUDA 13.0, 580.65.06"
  std::string problem;       ///< the reason why there are no GPUs
  std::string nvml_problem;  ///< the reason why NVML's facts are missing
  std::vector<GpuFacts> gpus;
  std::vector<std::vector<bool>> reaches;  ///< [from][to]: peer access
};

/// Returns the GPUs, or in `problem` the reason why there are none. It makes no context on any GPU, and never
/// throws.
GpusFound find_gpus();

}  // namespace chorale::tools
