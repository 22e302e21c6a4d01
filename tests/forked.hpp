/// \file
/// Runs ranks as forked processes that end with a verdict.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <vector>

namespace chorale::test {

/// Runs `f` once for each rank, each time in its own process, which exits with the value of `f`. If `f`
/// throws, the process prints why and exits with 99.
/// \returns by rank how the processes ended: exit statuses, and signals as negative numbers
template <class F>
std::vector<int> forked(int ranks, const F& f) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      int code = 99;
      try {
        code = f(rank);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      }
      _exit(code);
    }
    children.push_back(pid);
  }
  std::vector<int> codes;
  for (const pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  }
  return codes;
}

}  // namespace chorale::test
