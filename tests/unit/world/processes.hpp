/// \file
/// Runs ranks as forked processes, for tests.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "chorale/error.hpp"

namespace chorale::test {

/// Forks one process per rank. Each returns one text: the result of `body`, or "<reason>: <message>".
class Processes {
 public:
  using Body = std::function<std::string(int rank)>;

  Processes(int ranks, const Body& body) {
    for (int rank = 0; rank < ranks; ++rank) spawn(rank, body);
  }

  ~Processes() {
    for (One& one : all_) {
      if (one.pid > 0) {
        ::kill(one.pid, SIGKILL);
        waitpid(one.pid, nullptr, 0);
      }
      close(one.pipe);
    }
  }

  void spawn(int rank, const Body& body) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      close(ends[0]);
      const std::string said = call(body, rank);
      [[maybe_unused]] const ssize_t written = ::write(ends[1], said.data(), said.size());
      _exit(0);
    }
    close(ends[1]);
    all_.push_back({pid, ends[0]});
  }

  pid_t pid(int index) const { return all_[index].pid; }
  void kill(int index) { ::kill(all_[index].pid, SIGKILL); }

  /// Returns the text of the process; "" if it was killed; "(silent)" after five minutes.
  std::string said(int index) {
    One& one = all_[index];
    std::string text;
    for (char part[512];;) {
      pollfd polled{.fd = one.pipe, .events = POLLIN, .revents = 0};
      if (poll(&polled, 1, 300000) == 0) return "(silent)";
      const ssize_t bytes = ::read(one.pipe, part, sizeof part);
      if (bytes <= 0) break;
      text.append(part, size_t(bytes));
    }
    waitpid(one.pid, nullptr, 0);
    one.pid = -1;
    return text;
  }

 private:
  struct One {
    pid_t pid;
    int pipe;
  };

  static std::string call(const Body& body, int rank) {
    try {
      return body(rank);
    } catch (const RunError& error) {
      return std::string(name(error.reason)) + ": " + error.what();
    } catch (const std::exception& error) {
      return std::string("exception: ") + error.what();
    }
  }

  std::vector<One> all_;
};

/// Returns an address that no other test uses.
inline std::string fresh_address() {
  static int count = 0;
  return "shm://test-" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

/// Returns whether a process that is gone made this file. If memory cannot be made without a name, it has one
/// for a moment, and files of other tests on the same machine may appear.
inline bool left_by_a_process(const std::filesystem::path& file) {
  int pid = 0;
  return std::sscanf(file.filename().c_str(), "chorale-unnamed-%d-", &pid) == 1 && ::kill(pid, 0) != 0 &&
         errno == ESRCH && exists(file);
}

/// Returns the names that this process's tests have left in /dev/shm.
inline std::vector<std::string> leftovers() {
  std::vector<std::string> names;
  const std::string own = "test-" + std::to_string(getpid()) + "-";
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (name.find(own) != std::string::npos || left_by_a_process(entry.path())) names.push_back(name);
  }
  return names;
}

}  // namespace chorale::test
