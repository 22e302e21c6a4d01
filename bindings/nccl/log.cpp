#include "log.hpp"

#include <fmt/format.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "device.hpp"

namespace chorale::nccl::log {
namespace {

constexpr int not_read = -1;
constexpr std::array level_names = {"", "VERSION", "WARN", "INFO", "ABORT", "TRACE"};

struct Log {
  std::mutex mutex;
  std::atomic<int> level = not_read;
  std::atomic<unsigned> subsystems = 0;
  std::FILE* file = stdout;
  std::chrono::steady_clock::time_point start;
};

/// Returns the log of the process. It is never destroyed, because the destructors of other libraries may
/// still print.
Log& process_log() {
  static Log& log = *new Log;
  return log;
}

std::string host() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  std::string text(name.data());
  text = text.substr(0, text.find('.'));
  for (char& letter : text) {
    if (letter == '%' || letter == '/') letter = '-';
  }
  return text;
}

Level level_in_environment() {
  const char* const wanted = std::getenv("NCCL_DEBUG");
  for (size_t level = 1; wanted && level < level_names.size(); ++level) {
    if (strcasecmp(wanted, level_names[level]) == 0) return Level(level);
  }
  return Level::none;
}

/// Returns the level, and opens the file if this is the first call. The caller holds the mutex.
Level read_environment(Log& log) {
  if (log.level != not_read) return Level(log.level.load());
  if (log.file != stdout) std::fclose(log.file);
  log.file = stdout;
  const Level level = level_in_environment();
  const char* const pattern = std::getenv("NCCL_DEBUG_FILE");
  if (level > Level::version && pattern && *pattern) {
    if (std::FILE* const file = std::fopen(file_name(pattern).c_str(), "w")) {
      std::setvbuf(file, nullptr, _IOLBF, BUFSIZ);
      log.file = file;
    }
  }
  log.start = std::chrono::steady_clock::now();
  log.subsystems = subsystems_of(std::getenv("NCCL_DEBUG_SUBSYS"));
  log.level = int(level);
  return level;
}

}  // namespace

unsigned subsystems_of(const char* value) {
  constexpr std::pair<const char*, unsigned> names[] = {{"INIT", unsigned(Subsystem::init)},
                                                        {"ENV", unsigned(Subsystem::env)},
                                                        {"TUNING", unsigned(Subsystem::tuning)},
                                                        {"CALL", unsigned(Subsystem::call)},
                                                        {"ALL", ~0U}};
  if (!value) return ~0U;
  const bool others = *value == '^';
  std::string_view rest = others ? value + 1 : value;
  unsigned mask = 0;
  while (!rest.empty()) {
    const std::string word(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    for (const auto& [name, bits] : names) {
      if (strcasecmp(word.c_str(), name) == 0) mask |= bits;
    }
  }
  return others ? ~mask : mask;
}

std::string file_name(std::string_view pattern) {
  std::string name;
  for (size_t place = 0; place < pattern.size(); ++place) {
    if (pattern[place] != '%' || place + 1 == pattern.size()) {
      name += pattern[place];
      continue;
    }
    switch (const char letter = pattern[++place]) {
      case '%':
        name += '%';
        break;
      case 'h':
        name += host();
        break;
      case 'p':
        name += std::to_string(getpid());
        break;
      default:
        (name += '%') += letter;
    }
  }
  return name;
}

bool prints(Level level, Subsystem subsystem) {
  Log& log = process_log();
  int current = log.level.load(std::memory_order_acquire);
  if (current == not_read) {
    const std::lock_guard lock(log.mutex);
    current = int(read_environment(log));
  }
  if (current < int(level)) return false;
  return level < Level::info || (log.subsystems & unsigned(subsystem)) != 0;
}

void line(Level level, std::string_view text, Subsystem subsystem) {
  if (!prints(level, subsystem)) return;
  Log& log = process_log();
  const std::lock_guard lock(log.mutex);
  read_environment(log);
  if (level == Level::version) {
    fmt::print(log.file, "{}\n", text);
  } else {
    std::string extra;
    if (level == Level::trace) {
      const std::chrono::duration<double, std::milli> since = std::chrono::steady_clock::now() - log.start;
      extra = fmt::format("{:.6f} ", since.count());
    }
    fmt::print(log.file, "{}{}:{}:{} [{}] {}NCCL {} {}\n", level == Level::warn ? "\n" : "", host(), getpid(),
               syscall(SYS_gettid), current_gpu_number(), extra, level_names[size_t(level)], text);
  }
  std::fflush(log.file);
}

void reset() {
  Log& log = process_log();
  const std::lock_guard lock(log.mutex);
  log.level = not_read;
}

}  // namespace chorale::nccl::log
