// Candidates in processes of their own.

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "../world/thrown.hpp"
#include "chorale/error.hpp"
#include "chorale/tuner.hpp"

namespace chorale {
namespace {

using Clock = std::chrono::steady_clock;

/// What a child says: one Measurement, as text.
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
    // Whatever it is: beyond here is the application, which is not to run a second time in a child.
    measured = {false, 0, world::thrown_text()};
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

/// What comes until the end of the pipe; false when time is over.
bool read_until(int in, Clock::time_point end, std::string& text) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    pollfd polled{in, POLLIN, 0};
    if (::poll(&polled, 1, int(std::min<int64_t>(left, 1 << 30))) <= 0) continue;
    char part[4096];
    const ssize_t got = ::read(in, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(part, size_t(got));
  }
}

Measurement measure(const TuneConfig& candidate, const Trial& trial, std::chrono::milliseconds limit) {
  int ends[2];
  if (::pipe(ends) != 0) {
    throw RunError(RunError::Reason::resources, fmt::format("no pipe to a child: {}", std::strerror(errno)));
  }
  const pid_t child = ::fork();
  if (child < 0) {
    const int error = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw RunError(RunError::Reason::resources, fmt::format("no child process: {}", std::strerror(error)));
  }
  if (child == 0) {
    ::close(ends[0]);
    run_child(ends[1], candidate, trial);
  }
  ::close(ends[1]);
  std::string text;
  const bool ended = read_until(ends[0], Clock::now() + limit, text);
  ::close(ends[0]);
  if (!ended) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended) return {false, 0, fmt::format("it had not ended after {} ms", limit.count())};
  if (WIFSIGNALED(status)) return {false, 0, fmt::format("it died of signal {}", WTERMSIG(status))};
  Measurement measured;
  if (!decode(text, measured)) return {false, 0, "it ended without a result"};
  if (measured.correct && (!std::isfinite(measured.ns) || measured.ns < 0))
    return {false, 0, fmt::format("it says that a call takes {} ns", measured.ns)};
  return measured;
}

}  // namespace

std::vector<Measurement> tune(TuneTable& table, const TuneKey& key, const std::vector<TuneConfig>& candidates,
                              const Trial& trial, std::chrono::milliseconds limit) {
  key.check();
  table.forget_failures(key);
  std::vector<Measurement> all;
  const Measurement* best = nullptr;
  all.reserve(candidates.size());
  for (const TuneConfig& candidate : candidates) {
    all.push_back(measure(candidate, trial, limit));
    const Measurement& measured = all.back();
    if (!measured.correct) {
      table.set_failure(key, candidate, measured.why);
    } else if (!best || measured.ns < best->ns) {
      best = &measured;
    }
  }
  if (best) table.set(key, candidates[size_t(best - all.data())], best->ns);
  return all;
}

}  // namespace chorale
