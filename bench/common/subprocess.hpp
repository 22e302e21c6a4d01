/// \file
/// Measures work in a separate process, so that only its own time and memory count.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "chorale/plan.hpp"

namespace chorale::bench {

/// Returns the CPU time of this process, in its own code and in the kernel on its behalf.
inline double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

inline uint64_t count_ops(const Plan& plan) {
  uint64_t ops = 0;
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) ops += block.ops.size();
  }
  return ops;
}

/// Runs `measure` in a separate process and returns its result. `peak_bytes` is the peak memory of that
/// process.
/// \throws std::runtime_error that names `what` if the process ends without a result
template <class Measure, class Sample = std::invoke_result_t<Measure>>
Sample measure_in_subprocess(const std::string& what, const Measure& measure) {
  static_assert(std::is_trivially_copyable_v<Sample>, "it goes through a pipe");
  std::array<int, 2> ends{};
  if (pipe(ends.data())) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    try {
      const Sample sample = measure();
      if (::write(ends[1], &sample, sizeof sample) == ssize_t(sizeof sample)) std::_Exit(0);
    } catch (const std::exception& error) {  // only the parent runs the code after this
      std::fprintf(stderr, "%s\n", error.what());
    }
    std::_Exit(1);
  }
  close(ends[1]);
  Sample sample;
  const bool received = ::read(ends[0], &sample, sizeof sample) == ssize_t(sizeof sample);
  close(ends[0]);
  int status = 0;
  rusage used{};
  wait4(child, &status, 0, &used);
  if (!received || status) throw std::runtime_error(what + " ended early");
  sample.peak_bytes = uint64_t(used.ru_maxrss) * 1024;
  return sample;
}

}  // namespace chorale::bench
