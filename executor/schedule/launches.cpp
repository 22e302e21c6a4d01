#include "launches.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "chorale/collective.hpp"
#include "executor/world/collective_try.hpp"

namespace chorale::schedule_run {
namespace {

using schedule::Step;
using schedule::StepKind;

/// Returns the bytes of the message, as Arguments::bytes defines them.
uint64_t message_bytes(const Plan& plan, uint64_t input, uint64_t output) {
  return collective_info(plan.collective).counts_output() ? output : input;
}

void check_sizes(const Plan& plan, uint64_t input, uint64_t output, DType dtype) {
  const MessageSizes sizes = message_sizes(plan, message_bytes(plan, input, output), dtype);
  if (sizes.input == input && sizes.output == output) return;
  throw UsageError(fmt::format(
      "the views are {} bytes of input and {} of output, but plan '{}' ({}) takes {} and {} on {} "
      "ranks: launch it with views of these sizes",
      input, output, plan.name, plan.collective, sizes.input, sizes.output, plan.ranks()));
}

std::string names(const BlockPlans& plans) {
  if (plans.empty()) return "which is empty";
  std::vector<std::string_view> all;
  for (const auto& [name, plan] : plans) all.push_back(name);
  return fmt::format("which has '{}'", fmt::join(all, "', '"));
}

/// Returns a description of a launch's place, for errors.
std::string place(const schedule::Schedule& schedule, uint32_t rank, const Step& step) {
  const SourceLine line = schedule.line_of(step.at);
  return fmt::format("launch of '{}', {}{}", step.name, where(rank, step),
                     line.line ? fmt::format(" ({}:{})", line.file, line.line) : "");
}

void look_at(const schedule::Concrete& all, const Step& step, const BlockPlans& plans) {
  const auto plan = plans.find(step.name);
  if (plan == plans.end())
    throw UsageError(fmt::format("it is not in ScheduleArguments::plans, {}", names(plans)));
  if (plan->second.extension.schedule && plan->second.gpus.empty())
    throw UsageError(
        fmt::format("plan '{}' is a host schedule, and has no thread blocks", plan->second.name));
  if (plan->second.ranks() != all.ranks)
    throw UsageError(fmt::format("plan '{}' is for {} ranks, but the schedule runs on {}", plan->second.name,
                                 plan->second.ranks(), all.ranks));
  const schedule::Box &to = step.writes[0], &from = step.reads[0];
  const DType dtype = all.tensors[to.tensor].dtype;
  if (dtype != all.tensors[from.tensor].dtype)
    throw UsageError(fmt::format("{} is {}, but {} is {}: cast one of them", schedule::text(all, to),
                                 dtype_name(dtype), schedule::text(all, from),
                                 dtype_name(all.tensors[from.tensor].dtype)));
  for (const schedule::Box* box : {&to, &from}) {
    if (!box->contiguous)
      throw UsageError(fmt::format("the elements of {} are not contiguous: copy them to a temporary",
                                   schedule::text(all, *box)));
  }
  check_sizes(plan->second, from.bytes, to.bytes, dtype);
}

std::vector<const Step*> launches_of(const schedule::Concrete& all, uint32_t rank) {
  std::vector<const Step*> launches;
  for (const Step& step : all.steps[rank])
    if (step.kind == StepKind::launch) launches.push_back(&step);
  return launches;
}

/// Checks that all ranks launch in the same order, because the ranks of an executor must make the same calls.
void check_order(const schedule::Schedule& schedule, const schedule::Concrete& all) {
  const std::vector<const Step*> first = launches_of(all, 0);
  for (uint32_t rank = 1; rank < all.ranks; ++rank) {
    const std::vector<const Step*> mine = launches_of(all, rank);
    if (mine.size() != first.size())
      throw UsageError(
          fmt::format("rank 0 launches {} plans, but rank {} {}: every rank takes part in every launch",
                      first.size(), rank, mine.size()));
    for (size_t at = 0; at < mine.size(); ++at) {
      const Step &one = *first[at], &other = *mine[at];
      const bool same = one.name == other.name && one.writes[0].bytes == other.writes[0].bytes &&
                        one.reads[0].bytes == other.reads[0].bytes &&
                        all.tensors[one.writes[0].tensor].dtype == all.tensors[other.writes[0].tensor].dtype;
      if (same) continue;
      const auto said = [&](uint32_t of, const Step& step) {
        return fmt::format("{} from {} to {}", place(schedule, of, step), schedule::text(all, step.reads[0]),
                           schedule::text(all, step.writes[0]));
      };
      throw UsageError(
          fmt::format("the ranks disagree on launch {}: {}, and {}; launch the same plans in the same order",
                      at + 1, said(0, one), said(rank, other)));
    }
  }
}

}  // namespace

void check_launches(const schedule::Schedule& schedule, const Unrolled& made, const BlockPlans& plans) {
  const schedule::Concrete& all = made.concrete;
  for (uint32_t rank = 0; rank < all.ranks; ++rank) {
    for (const Step* step : launches_of(all, rank)) {
      try {
        look_at(all, *step, plans);
      } catch (const UsageError& wrong) {
        throw UsageError(fmt::format("{}: {}", place(schedule, rank, *step), wrong.what()));
      }
    }
  }
  check_order(schedule, all);
}

Launches::Launches(World& world, const Config& config, const BlockPlans& plans, const RankProgram& program)
    : first_(program.actions.data()), launches_(program.actions.size()) {
  for (size_t at = 0; at < program.actions.size(); ++at) {
    const Action& action = program.actions[at];
    if (action.kind != StepKind::launch) continue;
    if (!executor_) {
      Config own = config;
      own.bindings = 0;  // bindings made here are used as long as the schedule
      executor_.emplace(world, own);
    }
    const TensorView &to = action.writes[0], &from = action.reads[0];
    const Plan& plan = plans.at(action.step->name);
    const uint64_t width = dtype_size(to.dtype);
    const Launch& launch = launches_[at].emplace(
        Launch{&plan,
               {.in = from.data,
                .out = to.data,
                .bytes = message_bytes(plan, from.elements() * width, to.elements() * width),
                .dtype = to.dtype}});
    if (!launch.arguments.bytes) continue;
    // Only the binding in prepare() is collective. If one rank cannot use its buffers, all ranks must fail.
    world::collective_try(world, [&] { executor_->prepare(plan, launch.arguments); });
  }
}

void Launches::execute(const Action& action, void* stream) {
  const Launch& launch = *launches_[size_t(&action - first_)];
  if (launch.arguments.bytes) executor_->execute(*launch.plan, launch.arguments, stream);
}

void Launches::check() {
  if (executor_) executor_->check();
}

void Launches::synchronize(void* stream) {
  if (executor_) executor_->synchronize(stream);
}

}  // namespace chorale::schedule_run
