// Writes to the log how calls run, and why other plans were not taken.

#include <fmt/format.h>

#include <algorithm>
#include <chorale/collective.hpp>
#include <functional>

#include "communicator.hpp"
#include "log.hpp"

namespace chorale::nccl {
namespace {

/// Returns whether one of two buffers begins in the other.
bool overlap(const void* in, uint64_t in_bytes, const void* out, uint64_t out_bytes) {
  const char *const first = static_cast<const char*>(in), *const second = static_cast<const char*>(out);
  const std::less<> before;
  return first && second &&
         ((!before(first, second) && before(first, second + out_bytes)) ||
          (!before(second, first) && before(second, first + in_bytes)));
}

/// Log lines of the other plans have at most this many letters, unless one plan and its reason have more.
constexpr size_t most_letters = 130;

/// Returns the plans that were not taken, with their reasons, as texts of lines that begin with `head`.
std::vector<std::string> lines_of(const std::string& head, const std::vector<TunedPlans::Passed>& passed) {
  std::vector<std::string> lines;
  std::vector<TunedPlans::Passed> in_line;
  for (const TunedPlans::Passed& one : passed) {
    in_line.push_back(one);
    if (in_line.size() == 1 || head.size() + words_of(in_line).size() <= most_letters) continue;
    in_line.pop_back();
    lines.push_back(head + words_of(in_line));
    in_line = {one};
  }
  if (!in_line.empty()) lines.push_back(head + words_of(in_line));
  return lines;
}

}  // namespace

bool Communicator::in_place(const Task& task, std::string_view collective) const {
  const CollectiveInfo& parts = collective_info(collective);
  const uint64_t bytes = task.count * element_bytes(task.type), n = uint64_t(ranks());
  return overlap(task.send, bytes * parts.input_parts(n), task.recv, bytes * parts.output_parts(n));
}

/// Returns why a call does not run as the plan that was chosen for it; empty if it does.
std::string Communicator::reason_for_other_steps(const Collective& collective,
                                                 const std::vector<CallPart>& steps) {
  const bool as_chosen =
      steps.size() == 1 && steps[0].collective && steps[0].collective->shape.program.empty();
  const Shape& shape = collective.shape;
  if (!as_chosen) return std::string(why_other_steps(collective));
  return shape.root != 0 && choose(shape, shape.bytes).own ? "for root 0 only" : "";
}

void Communicator::log_plans(const Task& task, const Collective& collective,
                             const std::vector<CallPart>& steps) {
  // All ranks choose the same plan, so only one of them prints it, as in NCCL.
  if (rank() != 0 || !log::prints(log::Level::info, log::Subsystem::tuning)) return;
  const Shape& shape = collective.shape;
  const bool reduces = collective_reduces(shape.collective);
  const PlannedCall call{info(task.function).name, shape.bytes, reduces ? dtype_name(shape.dtype) : "",
                         in_place(task, shape.collective)};
  std::vector<std::string> ways;
  for (const CallPart& step : steps) {
    std::string way = "messages";
    if (step.collective) {
      const Chosen& choice = chosen(step.collective->shape);
      way = "plan " + choice.words;
      if (call.in_place && !choice.in_place) way += ", with a copy of the input";
    }
    if (std::find(ways.begin(), ways.end(), way) == ways.end()) ways.push_back(way);
  }
  const std::string way = fmt::format("{}", fmt::join(ways, " and "));
  if (!plan_log_.add(call, way)) return;
  std::vector<TunedPlans::Passed> passed;
  const std::string word(shape.collective);
  const uint64_t bytes = tuned_bytes(shape);
  if (const std::string reason = reason_for_other_steps(collective, steps); !reason.empty())
    passed.push_back({choose(shape, bytes).name, reason});
  for (const TunedPlans::Passed& one : plans_.explain(word, bytes, shape.dtype)) passed.push_back(one);
  const std::string words = fmt::format("{}: {} Bytes{}{}{}", call.function.substr(4), call.bytes,
                                        reduces ? " of " : "", call.type, call.in_place ? " in place" : "");
  log::line(log::Level::info, words + " -> " + way, log::Subsystem::tuning);
  for (const std::string& line : lines_of(words + ", not taken: ", passed))
    log::line(log::Level::info, line, log::Subsystem::tuning);
}

/// Writes once for each reason that a collective has copied a buffer of this rank.
void Communicator::log_copy(const Collective& collective) {
  const std::string why = executor_.why_copied();
  if (why.empty() || !log::prints(log::Level::info, log::Subsystem::tuning)) return;
  if (!logged_copies_.emplace(why).second) return;
  log::line(
      log::Level::info,
      fmt::format("rank {} copies buffers through memory of the library, which takes longer, because: {} "
                  "(first seen in {} of {} Bytes)",
                  rank(), why, collective.shape.collective, collective.shape.bytes),
      log::Subsystem::tuning);
}

}  // namespace chorale::nccl
