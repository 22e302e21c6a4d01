#include "calls.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "chorale/nccl_calls.h"
#include "environment.hpp"
#include "fallback.hpp"
#include "groups.hpp"
#include "last_error.hpp"
#include "log.hpp"

namespace chorale::nccl {
namespace {

constexpr size_t answers = 3;
constinit std::array<std::array<std::atomic<uint64_t>, answers>, functions.size()> counts;

void print_beginning() {
  static std::once_flag printed;
  std::call_once(printed, [] {
    log::line(log::Level::version, fmt::format("NCCL version {}.{}.{}+chorale{}", int(NCCL_MAJOR),
                                               int(NCCL_MINOR), int(NCCL_PATCH), CHORALE_VERSION));
    constexpr log::Subsystem subject = log::Subsystem::env;
    if (!log::prints(log::Level::info, subject)) return;
    if (const std::string text = fallback::describe(); !text.empty())
      log::line(log::Level::info, text, subject);
    for (const std::string& text : lines_about_environment()) log::line(log::Level::info, text, subject);
  });
}

/// Returns the functions with calls that were answered so, each with their number.
std::string answered(Answer answer) {
  std::string text;
  for (size_t place = 0; place < functions.size(); ++place) {
    const uint64_t number = counts[place][size_t(answer)];
    if (number > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", functions[place].name, number);
  }
  return text;
}

/// Prints the counts when the process ends. It looks at the counts first, because a process that made no
/// call, such as a shell under LD_PRELOAD, must not open and so empty the file of the log.
[[gnu::destructor]] void print_end() {
  for (const auto& [answer, words] :
       {std::pair(Answer::served, "served by Chorale"), std::pair(Answer::refused, "refused"),
        std::pair(Answer::fallback, "given to the fallback")}) {
    if (const std::string text = answered(answer); !text.empty())
      log::line(log::Level::info, fmt::format("calls {}: {}", words, text));
  }
}

}  // namespace

void count(Function function, Answer answer) {
  print_beginning();
  counts[size_t(function)][size_t(answer)].fetch_add(1, std::memory_order_relaxed);
  if (log::prints(log::Level::trace, log::Subsystem::call)) {
    constexpr std::array words = {"served by Chorale", "refused", "given to the fallback"};
    log::line(log::Level::trace, fmt::format("{}: {}", info(function).name, words[size_t(answer)]),
              log::Subsystem::call);
  }
}

void change_count(Function function, Answer from, Answer to) {
  counts[size_t(function)][size_t(from)].fetch_sub(1, std::memory_order_relaxed);
  counts[size_t(function)][size_t(to)].fetch_add(1, std::memory_order_relaxed);
}

ncclResult_t refuse(Function function, const Checked& null, const Checked& checked, bool may_fall_back) {
  const Checked& decided = null ? null : checked;
  if (decided && decided->result == ncclSuccess) {
    count(function, Answer::served);
    return ncclSuccess;
  }
  count(function, Answer::refused);
  if (decided) return fail(function, decided->result, decided->sentence);
  return fail(
      function, ncclInvalidUsage,
      fmt::format("the call is refused, because Chorale's libnccl.so.2 {}{}",
                  info(info(function).area).reason, may_fall_back ? ". " + fallback::remedy(function) : ""));
}

ncclResult_t fail(Function function, ncclResult_t result, std::string_view sentence) {
  set_last_error(fmt::format("{}: {}", info(function).name, sentence));
  if (info(info(function).area).joins_groups) group::fail(result);
  return result;
}

}  // namespace chorale::nccl

extern "C" __attribute__((visibility("default"))) int chorale_nccl_calls(const char* function,
                                                                         uint64_t* served, uint64_t* refused,
                                                                         uint64_t* fallback) {
  using namespace chorale::nccl;
  const auto found = function ? function_of(function) : std::nullopt;
  if (!found) return -1;
  const auto& of_function = counts[size_t(*found)];
  *served = of_function[size_t(Answer::served)];
  *refused = of_function[size_t(Answer::refused)];
  *fallback = of_function[size_t(Answer::fallback)];
  return 0;
}
