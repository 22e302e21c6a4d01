/// \file
/// The GPUs of this machine, as the driver describes them.
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
  bool ipc = false;       ///< memory and events of one process in another
  bool vmm = false;       ///< virtual memory management
  bool posix_fd = false;  ///< its allocations as POSIX file descriptors
  bool fabric = false;    ///< and as fabric handles
  bool multicast = false;
  bool prohibited = false;  ///< the compute mode lets nobody use it
  // From the management library; none without it.
  std::optional<uint64_t> free_memory;
  std::optional<int> nvlinks;  ///< that are up
};

struct GpusFound {
  std::string driver;        ///< "CUDA 13.0", with the management library "CUDA 13.0, 580.65.06"
  std::string problem;       ///< why there are none
  std::string nvml_problem;  ///< why what NVML knows is missing
  std::vector<GpuFacts> gpus;
  std::vector<std::vector<bool>> reaches;  ///< [from][to]: peer access
};

/// Makes no context on any GPU, and never throws: what is missing is said in what it returns.
GpusFound find_gpus();

}  // namespace chorale::tools
