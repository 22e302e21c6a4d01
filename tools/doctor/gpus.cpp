// Examines the GPUs of this machine for `chorale doctor`.

#include <fmt/format.h>

#include <algorithm>

#include "tools/command.hpp"
#include "tools/doctor/examination.hpp"

namespace chorale::tools {
namespace {

void show(Examination& found, const GpuFacts& gpu, const std::string& which) {
  std::string text = fmt::format("{} at {}, sm_{}, {} SMs, {}", gpu.name, gpu.bus, gpu.capability, gpu.sms,
                                 mebibytes(gpu.memory));
  if (gpu.free_memory) text += ", of which free " + mebibytes(*gpu.free_memory);
  if (gpu.nvlinks) text += ", " + count(uint64_t(*gpu.nvlinks), "NVLink");
  if (gpu.prohibited) text += ", compute mode prohibited";
  found.judge(!gpu.prohibited, which, text, "as root: nvidia-smi -c 0");
  const std::pair<const char*, bool> abilities[] = {
      {"IPC", gpu.ipc},
      {"virtual memory", gpu.vmm},
      {"POSIX file descriptors", gpu.posix_fd},
      {"fabric handles", gpu.fabric},
      {"multicast (used only if switch_channels says so)", gpu.multicast}};
  std::vector<std::string> has, lacks;
  for (const auto& [what, there] : abilities) (there ? has : lacks).push_back(what);
  found.more("has: " + (has.empty() ? "none" : join(has)) +
             "; lacks: " + (lacks.empty() ? "none" : join(lacks)));
}

/// Prints peer access with a row for each GPU and a column for each peer.
void show_peer_access(Examination& found, const GpusFound& gpus) {
  const size_t devices = gpus.gpus.size();
  size_t missing = 0;
  for (const std::vector<bool>& row : gpus.reaches)
    missing += size_t(std::count(row.begin(), row.end(), false));
  if (missing == 0) {
    found.pass("peer access", "every GPU reaches every other");
  } else {
    found.note("peer access",
               fmt::format("{} of {} directions are missing: collectives between these GPUs cannot run",
                           missing, devices * (devices - 1)));
  }
  std::string heads = "from\\to";
  for (size_t to = 0; to < devices; ++to) heads += fmt::format("{:>4}", to);
  found.more(heads);
  for (size_t from = 0; from < devices; ++from) {
    std::string row = fmt::format("{:>7}", from);
    for (size_t to = 0; to < devices; ++to)
      row += from == to ? "   -" : gpus.reaches[from][to] ? " yes" : "  no";
    found.more(row);
  }
}

}  // namespace

void examine_gpus(Examination& found, const GpusFound& gpus) {
  if (!gpus.problem.empty()) {
    found.note("CUDA",
               gpus.driver.empty() ? gpus.problem : "driver for " + gpus.driver + ": " + gpus.problem);
    return;
  }
  found.pass("CUDA", fmt::format("driver for {}, {}", gpus.driver, count(gpus.gpus.size(), "GPU")));
  if (!gpus.nvml_problem.empty()) {
    found.note("NVML", gpus.nvml_problem + ": NVLinks and free memory are not known");
  }
  for (size_t which = 0; which < gpus.gpus.size(); ++which) {
    show(found, gpus.gpus[which], "GPU " + std::to_string(which));
  }
  if (gpus.gpus.size() > 1) show_peer_access(found, gpus);
}

}  // namespace chorale::tools
