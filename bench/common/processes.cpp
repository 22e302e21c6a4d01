#include "bench/common/processes.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace chorale::bench {

int run_in_processes(int ranks, const std::string& name,
                     const std::function<int(int, const std::string&)>& run_rank) {
  const std::string address = "shm://" + name + "." + std::to_string(getpid());
  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    processes.push_back(fork());
    if (processes.back() != 0) continue;
    int status = did_not_run;
    try {
      status = run_rank(rank, address);
    } catch (const Wrong& error) {  // all ranks see the error
      if (rank == 0) fmt::print(stderr, "{}\n", error.what());
      status = result_wrong;
    } catch (const std::exception& error) {
      fmt::print(stderr, "rank {}: {}\n", rank, error.what());
    }
    std::fflush(nullptr);
    std::_Exit(status);
  }
  int worst = bars_met;
  for (const pid_t process : processes) {
    int status = 0;
    waitpid(process, &status, 0);
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : int(did_not_run));
  }
  return worst;
}

}  // namespace chorale::bench
