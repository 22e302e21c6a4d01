// tune() runs each candidate in a separate process.

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "chorale/error.hpp"
#include "chorale/tuner.hpp"
#include "executor/system/thrown.hpp"

namespace chorale {
namespace {

using Clock = std::chrono::steady_clock;

/// Returns a Measurement as the text that a child writes to its pipe.
std::string encode(const Measurement& measured) {
  return fmt::format("{} {} {}", measured.correct ? 1 : 0, measured.ns, measured.why);
}

bool decode(const std::string& text, Measurement& measured) {
  int correct = 0, length = 0;
  if (std::sscanf(text.c_str(), "%d %lf %n", &correct, &measured.ns, &length) != 2) return false;
  measured.correct = correct == 1;
  measured.why = text.substr(size_t(length));
  return true;
}

[[noreturn]] void run_child(int out, const TuneConfig& candidate, const Trial& trial) {
  Measurement measured;
  try {
    measured = trial(candidate);
    if (!measured.correct && measured.why.empty()) measured.why = "the result is wrong";
  } catch (...) {
    // Every exception ends here. Otherwise it would reach code of the application, which must not run a
    // second time in a child.
    measured = {false, 0, system::thrown_text()};
  }
  const std::string text = encode(measured);
  const char* at = text.data();
  for (size_t left = text.size(); left != 0;) {
    const ssize_t written = ::write(out, at, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    at += written;
    left -= size_t(written);
  }
  std::_Exit(0);
}

/// Reads the child's output until the child has ended. Returns false at the deadline. It does not rely on the
/// end of the pipe, because the child may close the pipe early, and a process that the child leaves behind
/// may hold it open.
bool read_until_ended(pid_t child, int in, Clock::time_point end, std::string& text) {
  bool open = true;
  for (;;) {
    siginfo_t found{};
    const bool ended =
        ::waitid(P_PID, id_t(child), &found, WEXITED | WNOHANG | WNOWAIT) == 0 && found.si_pid == child;
    char part[65536];  // the size of a pipe, so one read gets all that an ended child has left in it
    const ssize_t got = open ? ::read(in, part, sizeof part) : 0;
    if (got > 0) text.append(part, size_t(got));
    open = got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
    if (ended) return true;
    if (Clock::now() >= end) return false;
    pollfd polled{in, POLLIN, 0};
    ::poll(&polled, open ? 1 : 0, open ? 10 : 1);
  }
}

Measurement measure(const TuneConfig& candidate, const Trial& trial, std::chrono::milliseconds limit) {
  int ends[2];
  if (::pipe(ends) != 0) {
    throw RunError(RunError::Reason::resources,
                   fmt::format("cannot make a pipe to a child process: {}", std::strerror(errno)));
  }
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) {
    const int error = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw RunError(RunError::Reason::resources,
                   fmt::format("cannot start a child process: {}", std::strerror(error)));
  }
  if (child == 0) {
    ::close(ends[0]);
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // ^C does not reach another process group
    if (::getppid() != parent) std::_Exit(1);
    run_child(ends[1], candidate, trial);
  }
  ::setpgid(child, child);  // the child does the same, and either process may run first
  ::close(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  std::string text;
  const bool ended = read_until_ended(child, ends[0], Clock::now() + limit, text);
  ::close(ends[0]);
  ::kill(-child, SIGKILL);  // also kills processes that the child has left running
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended) return {false, 0, fmt::format("it had not ended after {} ms", limit.count())};
  if (WIFSIGNALED(status)) return {false, 0, fmt::format("it died of signal {}", WTERMSIG(status))};
  Measurement measured;
  if (!decode(text, measured)) return {false, 0, "it ended without a result"};
  if (measured.correct && (!std::isfinite(measured.ns) || measured.ns <= 0))
    return {false, 0, fmt::format("it says that a call takes {} ns", measured.ns)};
  return measured;
}

}  // namespace

std::vector<Measurement> tune(TuneTable& table, const TuneKey& key, const std::vector<TuneConfig>& candidates,
                              const Trial& trial, std::chrono::milliseconds limit,
                              const std::function<void(const TuneConfig&)>& begins) {
  key.check();
  table.forget_failures(key);
  std::vector<Measurement> all;
  const Measurement* best = nullptr;
  all.reserve(candidates.size());
  for (const TuneConfig& candidate : candidates) {
    if (begins) begins(candidate);
    all.push_back(measure(candidate, trial, limit));
    const Measurement& measured = all.back();
    if (!measured.correct) {
      table.set_failure(key, candidate, measured.why);
    } else if (!best || measured.ns < best->ns) {
      best = &measured;
    }
  }
  if (best) {
    table.set(key, candidates[size_t(best - all.data())], best->ns);
  } else {
    // The old choice has failed now, or it is no longer among the candidates.
    table.forget_choice(key);
  }
  return all;
}

}  // namespace chorale
