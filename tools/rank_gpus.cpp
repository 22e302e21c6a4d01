#include "tools/rank_gpus.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <sstream>

#include "tools/command.hpp"
#include "tools/gpus.hpp"

#if defined(CHORALE_WITH_CUDA)
#include <cuda_runtime_api.h>
#endif

namespace chorale::tools {
namespace {

/// Returns the facts, one per line: "problem ...", "driver CUDA 13.0", "gpu NVIDIA H200".
std::string ask() {
  const GpusFound found = find_gpus();
  std::string text = "driver " + found.driver + "\n";
  if (!found.problem.empty()) text += "problem " + found.problem + "\n";
  for (const GpuFacts& gpu : found.gpus) text += "gpu " + gpu.name + "\n";
  return text;
}

/// Calls ask() in a separate process and returns its answer.
std::string ask_apart() {
  int ends[2];
  if (::pipe(ends) != 0) return "";
  const pid_t process = ::fork();
  if (process == 0) {
    const std::string text = ask();
    const bool said = ::write(ends[1], text.data(), text.size()) == ssize_t(text.size());
    ::_exit(said ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  char part[512];
  while (process > 0) {
    const ssize_t got = ::read(ends[0], part, sizeof part);
    if (got > 0) text.append(part, size_t(got));
    if (got == 0 || (got < 0 && errno != EINTR)) break;
  }
  ::close(ends[0]);
  while (process > 0 && ::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

}  // namespace

RankGpus find_rank_gpus() {
  RankGpus gpus;
#if defined(CHORALE_WITH_CUDA)
  gpus.toolkit = std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
#else
  gpus.problem = "this chorale was built without CUDA";
  return gpus;
#endif
  std::istringstream lines(ask_apart());
  for (std::string line; std::getline(lines, line);) {
    const std::string key = line.substr(0, line.find(' ')), value = line.substr(line.find(' ') + 1);
    if (key == "gpu") gpus.names.push_back(value);
    if (key == "driver") gpus.driver = value;
    if (key == "problem") gpus.problem = value;
  }
  if (gpus.names.empty() && gpus.problem.empty()) gpus.problem = "the driver finds no GPU";
  return gpus;
}

void need_gpus(const RankGpus& gpus, unsigned ranks, bool shared) {
  if (gpus.names.empty()) {
    throw Failure(
        Exit::run_failed, "there is no GPU for " + count(ranks, "rank"),
        gpus.problem + "; chorale doctor says what this machine has, and --backend cpu needs no GPU");
  }
  if (gpus.names.size() < ranks && !shared) {
    throw Failure(
        Exit::run_failed,
        "there are " + count(ranks, "rank") + ", but this machine has " + count(gpus.names.size(), "GPU"),
        "choose fewer ranks, or use --share-gpus to let ranks share a GPU (for tests, not for timings)");
  }
}

}  // namespace chorale::tools
