#include "tools/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <utility>

namespace chorale::tools {
namespace {

constexpr double silent_s = 2, every_s = 0.1;
constexpr size_t bar_width = 20;

bool quiet = false;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Returns the columns of the terminal; 80 if it does not say.
size_t columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

std::string duration_words(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  return seconds < 90 * 60 ? fmt::format("{:.0f} min", seconds / 60)
                           : fmt::format("{:.0f} h", seconds / 3600);
}

}  // namespace

Progress::Progress(double line_every)
    : start_(now()), last_(start_), line_every_(line_every), terminal_(::isatty(STDERR_FILENO)) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (shown_) std::cerr << "\r\033[K" << std::flush;
  shown_ = false;
}

void Progress::operator()(const std::string& what) {
  if (due()) show(what);
}

void Progress::operator()(const std::string& what, double share) {
  share = std::clamp(share, 0.0, 1.0);
  if (first_share_ < 0 && listened()) {
    first_time_ = now();
    first_share_ = share;
  }
  if (!due()) return;
  const size_t filled = size_t(share * bar_width);
  const std::string bar = std::string(filled, '#') + std::string(bar_width - filled, '.');
  // The first part of the work says little about the rest.
  const double done = share - first_share_, passed = now() - first_time_;
  const std::string left =
      done < 0.01 ? "" : ", about " + duration_words(passed / done * (1 - share)) + " left";
  show(fmt::format("[{}] {:2.0f} %{}  {}", bar, share * 100, left, what));
}

bool Progress::listened() const { return !quiet && (terminal_ || line_every_ > 0); }

bool Progress::due() const {
  if (!listened()) return false;
  const double time = now();
  return terminal_ ? time - start_ >= silent_s && time - last_ >= every_s : time - last_ >= line_every_;
}

void Progress::show(const std::string& line) {
  last_ = now();
  if (!terminal_) {
    std::cerr << line + '\n' << std::flush;
    return;
  }
  shown_ = true;
  // A line that wraps could not be overwritten.
  std::cerr << "\r\033[K" + line.substr(0, columns() - 1) << std::flush;
}

ProgressTicker::ProgressTicker(std::function<void(Progress&)> tell, double line_every)
    : thread_(quiet || (line_every <= 0 && !::isatty(STDERR_FILENO))
                  ? std::thread()
                  : std::thread([this, tell = std::move(tell), line_every] {
                      Progress progress(line_every);
                      std::unique_lock lock(mutex_);
                      while (!wake_.wait_for(lock, std::chrono::milliseconds(100), [this] { return over_; }))
                        tell(progress);
                    })) {}

ProgressTicker::ProgressTicker(const std::string& what)
    : ProgressTicker([what](Progress& progress) { progress(what); }) {}

ProgressTicker::~ProgressTicker() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void declare_quiet(CLI::App& app) {
  app.add_flag("-q,--quiet", quiet, "Do not show the progress of long work on a terminal");
}

}  // namespace chorale::tools
