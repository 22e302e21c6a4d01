#include "tools/ranks.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stop_token>
#include <thread>

#include "tools/shared.hpp"

namespace chorale::tools {
namespace {

std::atomic<int> stop_asked = 0;  // lock-free, so that a signal handler may write it
extern "C" void ask_to_stop(int) { stop_asked = 1; }

/// Describes how a rank's process ended.
struct End {
  char error[4096];
  RunError::Reason reason;
  std::atomic<bool> failed;

  void fail(RunError::Reason why, const char* message) {
    reason = why;
    std::snprintf(error, sizeof error, "%s", message);
    failed = true;
  }
};

/// Runs a rank in a child process, and does not return.
[[noreturn]] void be_rank(uint32_t rank, const std::string& address, pid_t parent, const Launch& launch,
                          const Config& config, const std::function<void(World&)>& body, End& end) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(int(Exit::run_failed));  // the parent died before the prctl() above
  ::signal(SIGINT, SIG_IGN);  // the parent ends this process after it has reported
  ::signal(SIGTERM, SIG_DFL);
  try {
    World world = World::join(address, int(rank), int(launch.ranks), config.join());
    try {
      body(world);
    } catch (const RunError&) {
      throw;
    } catch (const std::exception& error) {
      world.abort(error.what());
      throw;
    }
  } catch (const RunError& error) {
    end.fail(error.reason, error.what());
    ::_exit(int(Exit::run_failed));
  } catch (const std::exception& error) {
    end.fail(RunError::Reason::other, error.what());
    ::_exit(int(Exit::run_failed));
  }
  ::_exit(0);
}

/// Owns the processes of a run. None outlives this object.
class Children {
 public:
  ~Children() {
    for (const pid_t process : processes_) {
      if (process > 0) ::kill(process, SIGKILL);
    }
    for (const pid_t process : processes_) {
      while (process > 0 && ::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }

  void add(pid_t process) { processes_.push_back(process); }

  /// Reaps the processes that have ended. Returns a sentence about the first one that was killed.
  std::string poll() {
    std::string news;
    for (size_t rank = 0; rank < processes_.size(); ++rank) {
      int status = 0;
      if (processes_[rank] <= 0 || ::waitpid(processes_[rank], &status, WNOHANG) != processes_[rank])
        continue;
      if (WIFSIGNALED(status) && news.empty()) {
        news = "the process of rank " + std::to_string(rank) + " (" + std::to_string(processes_[rank]) +
               ") died: " + ::strsignal(WTERMSIG(status));
      }
      processes_[rank] = 0;
    }
    return news;
  }

  bool all_ended() const {
    for (const pid_t process : processes_) {
      if (process > 0) return false;
    }
    return true;
  }

 private:
  std::vector<pid_t> processes_;
};

/// Returns the error that caused the others. Errors that only follow from another rank's error come last.
std::string cause_of(const Shared<End>& ends, uint32_t ranks) {
  for (const bool echoes : {false, true}) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const End& end = ends[rank];
      const bool echo = end.reason == RunError::Reason::aborted || end.reason == RunError::Reason::peer_lost;
      if (end.failed && echo == echoes) return end.error;
    }
  }
  return "";
}

bool any_failed(const Shared<End>& ends, uint32_t ranks) {
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (ends[rank].failed) return true;
  }
  return false;
}

std::string run_processes(const Launch& launch, const Config& config,
                          const std::function<void(World&)>& body) {
  const pid_t parent = ::getpid();
  const std::string address = "shm://chorale-run-" + std::to_string(parent);
  const Shared<End> ends(launch.ranks);
  struct sigaction action = {}, old_interrupt, old_terminate;
  action.sa_handler = ask_to_stop;
  ::sigaction(SIGINT, &action, &old_interrupt);
  ::sigaction(SIGTERM, &action, &old_terminate);
  Children children;
  for (uint32_t rank = 0; rank < launch.ranks; ++rank) {
    const pid_t process = ::fork();
    if (process == 0) be_rank(rank, address, parent, launch, config, body, ends[rank]);
    if (process < 0) {
      throw Failure(Exit::run_failed,
                    "cannot start the process of rank " + std::to_string(rank) + " of " +
                        std::to_string(launch.ranks) + ": " + std::strerror(errno),
                    "make the ranks threads: run without --processes, or with --threads");
    }
    children.add(process);
  }

  Progress progress;
  std::string death;
  bool failure = false;
  auto give_up = std::chrono::steady_clock::time_point::max();
  while (!children.all_ended() && !stop_asked && std::chrono::steady_clock::now() < give_up) {
    const std::string news = children.poll();
    // The world notifies the other ranks. A rank that does not notice, for example because it is in a
    // library's kernel, is ended.
    if ((!news.empty() && death.empty()) || (!failure && any_failed(ends, launch.ranks))) {
      if (!news.empty()) death = news;
      failure = true;
      give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    }
    if (launch.progress) progress(launch.progress());
    if (launch.watch) launch.watch();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ::sigaction(SIGINT, &old_interrupt, nullptr);
  ::sigaction(SIGTERM, &old_terminate, nullptr);
  if (launch.watch) launch.watch();
  if (stop_asked) throw Failure(Exit::interrupted, "interrupted");
  const std::string cause = cause_of(ends, launch.ranks);
  if (death.empty()) return cause;
  return cause.empty() ? death : death + "\n  the others: " + cause;
}

}  // namespace

std::string run_ranks(const Launch& launch, const Config& config, const std::function<void(World&)>& body) {
  if (launch.processes) return run_processes(launch, config, body);
  std::jthread watcher;
  if (launch.watch) {
    watcher = std::jthread([&launch](std::stop_token ended) {
      do {
        launch.watch();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      } while (!ended.stop_requested());
      launch.watch();
    });
  }
  try {
    run_local(int(launch.ranks), body, config.local());
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

}  // namespace chorale::tools
