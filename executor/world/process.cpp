#include "process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <string>
#include <thread>

#include "executor/system/shared_memory.hpp"

namespace chorale::world {
namespace {

struct Status {
  int error = 0;   ///< the error that kept the status from being read
  char state = 0;  ///< 0: there is no such process
  uint64_t start = 0;
  /// The first thread has begun to end, so the process has lost its files or is about to.
  bool ending = false;
};

Status status_of(int pid) {
  const system::Descriptor file(open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t bytes = file ? read(file.get(), text, sizeof text) : -1;
  if (bytes < 0) return {.error = errno == ENOENT || errno == ESRCH ? 0 : errno};
  const std::string line(text, size_t(bytes));
  // The second field is the program's name in parentheses and may contain any characters. Field 3 is the
  // state, field 9 the flags, field 22 the start.
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  Status status;
  fields >> status.state;
  std::string field;
  for (int number = 4; number <= 22; ++number) {
    fields >> field;
    constexpr unsigned long exiting = 4;  // PF_EXITING of Linux's sched.h
    if (number == 9) status.ending = std::stoul(field) & exiting;
  }
  status.start = std::stoull(field);
  return status;
}

int open_pidfd(int pid) {
#if defined(SYS_pidfd_open)
  return int(syscall(SYS_pidfd_open, pid, 0));
#else
  return -1;
#endif
}

}  // namespace

Process this_process() {
  const Status status = status_of(getpid());
  errno = status.error;
  if (status.error) system::throw_errno("look at this process in /proc");
  struct stat space {};
  stat("/proc/self/ns/pid", &space);
  return {int32_t(getpid()), status.start, space.st_ino};
}

bool is_alive(const Process& process) {
  const Status status = status_of(process.pid);
  if (status.error) return true;
  return status.state != 0 && status.state != 'Z' && status.state != 'X' && status.start == process.start;
}

Watch::~Watch() {
  for (const Watched& one : watched_) {
    if (one.pidfd >= 0) close(one.pidfd);
  }
}

void Watch::add(int rank, const Process& process) {
  int pidfd = open_pidfd(process.pid);
  // Reading /proc needs a file as well, so it cannot help here.
  if (pidfd < 0 && (errno == EMFILE || errno == ENFILE))
    system::throw_errno(fmt::format("watch the process of rank {}", rank));
  // If the process died before pidfd_open(), its pid may belong to another process by now. Then watch it by
  // its start in /proc.
  if (pidfd >= 0 && !is_alive(process)) {
    close(pidfd);
    pidfd = -1;
  }
  watched_.push_back({rank, process, pidfd});
}

bool Watch::Watched::has_ended(std::chrono::milliseconds patience) const {
  if (pidfd < 0) {
    if (is_alive(process)) std::this_thread::sleep_for(patience);
    return !is_alive(process);
  }
  pollfd polled{.fd = pidfd, .events = POLLIN, .revents = 0};
  return poll(&polled, 1, int(patience.count())) > 0;
}

std::vector<int> Watch::dead() const {
  // Each process is polled separately, because a poll of all needs memory, and callers during a run must not
  // allocate.
  std::vector<int> ranks;
  for (const Watched& one : watched_) {
    if (one.has_ended()) ranks.push_back(one.rank);
  }
  return ranks;
}

void Watch::wait_for_ending(std::chrono::nanoseconds limit) const {
  const auto until = std::chrono::steady_clock::now() + limit;
  for (const Watched& one : watched_) {
    const Status status = status_of(one.process.pid);
    if (!status.ending || status.start != one.process.start) continue;
    while (!one.has_ended(std::chrono::milliseconds(20)) && std::chrono::steady_clock::now() < until) {
    }
  }
}

}  // namespace chorale::world
