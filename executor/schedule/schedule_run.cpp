#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "backend.hpp"
#include "chorale/content_hash.hpp"
#include "chorale/did_you_mean.hpp"
#include "chorale/renderer.hpp"
#include "chorale/schedule/lint.hpp"
#include "executor/binding/agreement.hpp"
#include "executor/system/fork.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/group.hpp"
#include "functions.hpp"
#include "groups_as_launches.hpp"
#include "resources.hpp"

namespace chorale {

using namespace schedule_run;

void* schedule_run::Bound::given(const schedule::ConcreteTensor& tensor) const {
  const auto found = buffers.find(tensor.name);
  return found == buffers.end() ? nullptr : found->second;
}

namespace {

/// Declares the application's own `zero` and `fill` in the schedule. The check [contents] assumes that they
/// make zeros, but only for the built-in functions.
void declare_replacements(const HostFunctions& own, schedule::Schedule& schedule) {
  for (const char* const name : {"zero", "fill"})
    if (own.contains(name) && !schedule.find_function(name))
      schedule.functions.push_back({.name = name, .writes = 1, .reads = 0});
}

/// Returns the mover of transfers that do not choose one.
schedule::Mover mover_of(const ScheduleArguments& arguments) {
  return arguments.mover == schedule::Mover::automatic ? schedule::Mover::ce_put : arguments.mover;
}

/// Unrolls a schedule on `ranks` ranks.
/// \param plans gets the plans that the schedule launches for itself
Unrolled unrolled(const Plan& plan, const ScheduleArguments& arguments, uint32_t ranks, BlockPlans& plans) {
  if (!plan.extension.schedule)
    throw UsageError(fmt::format("plan '{}' has no host schedule: run it with Executor", plan.name));
  const schedule::Schedule& schedule = *plan.extension.schedule;
  std::vector<std::string_view> params;
  for (const schedule::Param& param : schedule.params) params.push_back(param.name);
  for (const auto& [name, value] : arguments.params) {
    if (std::find(params.begin(), params.end(), name) != params.end()) continue;
    throw UsageError(
        fmt::format("plan '{}' has no parameter '{}'{}", plan.name, name, did_you_mean(name, params)));
  }
  Diagnostics findings;
  if (arguments.check) {
    schedule::Schedule of_these_ranks = schedule;
    of_these_ranks.ranks = {ranks};
    declare_replacements(arguments.functions, of_these_ranks);
    findings = schedule::check(of_these_ranks, arguments.params, mover_of(arguments));
    if (!findings.empty()) throw UsageError(render(plan, findings));
    if (spdlog::should_log(spdlog::level::debug))
      spdlog::debug(
          render_warnings(plan, schedule::lint(of_these_ranks, arguments.params, mover_of(arguments))));
  }
  const schedule::Concrete made = schedule::concretise(
      schedule, {.ranks = ranks, .params = arguments.params, .automatic = mover_of(arguments)}, findings);
  if (!findings.empty()) throw UsageError(render(plan, findings));
  schedule::Concrete expanded = schedule::expand_movers(made);
  groups_as_launches(schedule, expanded, plans);
  return unroll(schedule, std::move(expanded));
}

/// Returns by tensor whether a step of any rank writes it, on its own rank or at a peer.
std::vector<bool> written(const schedule::Concrete& made) {
  std::vector<bool> all(made.tensors.size());
  for (const std::vector<schedule::Step>& steps : made.steps) {
    for (const schedule::Step& step : steps) {
      for (const schedule::Box& box : step.writes) all[box.tensor] = true;
    }
  }
  return all;
}

/// Refuses tensors that overlap. Checks assume that tensors are separate memory, and streams use them at the
/// same time.
void check_overlaps(const schedule::Concrete& made, const ScheduleArguments& arguments) {
  struct Given {
    const schedule::ConcreteTensor* tensor;
    uint64_t first, end;
    bool is_read_alone;
  };
  const std::vector<bool> writes = written(made);
  std::vector<Given> all;
  for (size_t at = 0; at < made.tensors.size(); ++at) {
    const schedule::ConcreteTensor& tensor = made.tensors[at];
    const auto found = arguments.buffers.find(tensor.name);
    if (found == arguments.buffers.end() || !found->second) continue;
    const uint64_t first = reinterpret_cast<uint64_t>(found->second);
    const Given mine{&tensor, first, first + tensor.bytes, tensor.role == schedule::Role::in && !writes[at]};
    for (const Given& other : all) {
      if (mine.first >= other.end || other.first >= mine.end) continue;
      if (mine.is_read_alone && other.is_read_alone) continue;
      throw UsageError(
          fmt::format("the buffers of '{}' and '{}' overlap: give each tensor memory of its own; only inputs "
                      "that the schedule does not write may share it",
                      other.tensor->name, tensor.name));
    }
    all.push_back(mine);
  }
}

[[noreturn]] void no_tensor(const std::vector<schedule::ConcreteTensor>& tensors, std::string_view name) {
  std::vector<std::string_view> names;
  for (const schedule::ConcreteTensor& tensor : tensors) names.push_back(tensor.name);
  throw UsageError(fmt::format("the schedule has no tensor '{}'{}", name, did_you_mean(name, names)));
}

void check_buffers(const Unrolled& made, const ScheduleArguments& arguments) {
  const auto& tensors = made.concrete.tensors;
  for (const auto& [name, memory] : arguments.buffers) {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&name = name](const auto& tensor) { return tensor.name == name; });
    if (found == tensors.end()) no_tensor(tensors, name);
    if (found->role == schedule::Role::temp)
      throw UsageError(fmt::format("'{}' is a temporary, which the schedule allocates itself", name));
    if (!memory && found->bytes)
      throw UsageError(
          fmt::format("the buffer of '{}' is null: pass memory of {} bytes, or leave it out so that it is "
                      "allocated",
                      name, found->bytes));
  }
  check_overlaps(made.concrete, arguments);
}

/// Throws, because there is no function of this name.
[[noreturn]] void no_function(const std::string& who, const std::string& name, const HostFunctions& own,
                              const HostFunctions& built_in) {
  std::vector<std::string_view> names;
  for (const HostFunctions* functions : {&own, &built_in})
    for (const auto& [known, function] : *functions) names.push_back(known);
  throw UsageError(
      fmt::format("{}: function '{}' is neither built in nor among ScheduleArguments::functions{}", who, name,
                  did_you_mean(name, names)));
}

/// Checks that all functions that this rank calls exist, and that built-in ones can work on their views.
void check_calls(const schedule::Schedule& schedule, const Unrolled& made, uint32_t rank,
                 const HostFunctions& own, const HostFunctions& built_in, bool cuda) {
  const schedule::Concrete& all = made.concrete;
  for (const schedule::Step& step : all.steps[rank]) {
    if (step.kind != schedule::StepKind::call) continue;
    const SourceLine line = schedule.line_of(step.at);
    const std::string who =
        where(rank, step) + (line.line ? fmt::format(" ({}:{})", line.file, line.line) : "");
    if (const auto mine = own.find(step.name); mine != own.end() && !step.built_in) {
      if (!mine->second)
        throw UsageError(
            fmt::format("{}: function '{}' of ScheduleArguments::functions is empty", who, step.name));
      continue;
    }
    if (!built_in.count(step.name)) no_function(who, step.name, own, built_in);
    std::vector<TensorView> writes, reads;
    const auto view = [&](const schedule::Box& box) {
      return TensorView{nullptr, all.tensors[box.tensor].dtype, box.shape, box.strides};
    };
    for (const schedule::Box& box : step.writes) writes.push_back(view(box));
    for (const schedule::Box& box : step.reads) reads.push_back(view(box));
    const HostCall call{.name = step.name, .writes = writes, .reads = reads, .attributes = step.attributes};
    std::string wrong = misfit(call);
    if (wrong.empty() && cuda) wrong = cuda_misfit(call);
    if (!wrong.empty()) throw UsageError(fmt::format("{}: {}", who, wrong));
  }
}

/// Checks that all ranks bind the same schedule. Collective.
void agree_on_schedule(World& world, const Plan& plan, const ScheduleArguments& arguments) {
  std::string text = fmt::format("'{}' ({:016x}) via {}", plan.name, content_hash(plan),
                                 schedule::mover_names[size_t(mover_of(arguments))]);
  for (const auto& [name, value] : arguments.params) text += fmt::format(", {} = {}", name, value);
  const auto all = world.allgather(std::as_bytes(std::span(text)));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    const auto said = [](const std::vector<std::byte>& bytes) {
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    throw RunError(RunError::Reason::mismatch,
                   fmt::format("ranks 0 and {} disagree on the schedule: {} and {}", rank, said(all[0]),
                               said(all[rank])));
  }
}

}  // namespace

struct ScheduleRun::State {
  World& world;
  const system::Origin origin;
  uint64_t resets;            ///< the world's number of resets when this was bound
  schedule::Concrete shapes;  ///< has only tensors and streams
  std::unique_ptr<Streams> streams;

  size_t tensor(std::string_view name) const {
    for (size_t at = 0; at < shapes.tensors.size(); ++at)
      if (shapes.tensors[at].name == name) return at;
    no_tensor(shapes.tensors, name);
  }

  void check_world() const {
    if (resets != world.resets())
      throw UsageError("the world has been reset since this schedule was bound: bind it again");
  }
};

ScheduleRun::ScheduleRun(World& world, const Plan& plan, const ScheduleArguments& arguments,
                         const Config& config) {
  world.group().require_one_host("ScheduleRun");
  const std::string backend = config.backend;
  Unrolled made;
  HostFunctions functions = arguments.functions;
  BlockPlans plans = arguments.plans;
  agree_on_use(world, [&] {
    if (backend != "cpu" && backend != "cuda")
      throw UsageError(fmt::format("backend '{}' is unknown: use 'cpu' or 'cuda'", backend));
    made = unrolled(plan, arguments, uint32_t(world.ranks()), plans);
    check_buffers(made, arguments);
    HostFunctions built_in =
        backend == "cpu" ? cpu_functions() : cuda_functions(uint32_t(made.concrete.streams.size()));
    check_calls(*plan.extension.schedule, made, uint32_t(world.rank()), functions, built_in,
                backend == "cuda");
    check_launches(*plan.extension.schedule, made, plans);
    for (const auto& [name, function] : built_in) functions.insert_or_assign(built_in_name(name), function);
    functions.merge(built_in);
  });
  agree_on_schedule(world, plan, arguments);
  state_ = std::make_unique<State>(State{world, {}, world.resets(), {}, nullptr});
  state_->shapes.tensors = made.concrete.tensors;
  state_->shapes.streams = made.concrete.streams;
  std::set<std::string, std::less<>> applications;
  for (const auto& [name, function] : arguments.functions) applications.insert(name);
  Bound bound{.world = world,
              .schedule = plan.extension.schedule,
              .plan = plan.name,
              .unrolled = std::move(made),
              .functions = std::move(functions),
              .applications = std::move(applications),
              .buffers = arguments.buffers,
              .plans = std::move(plans),
              .config = config,
              .timeout = backend == "cpu" ? world.timeout() : config.timeout.value};
  world::collective_try(
      world, [&] { check_resources(bound, backend == "cpu" ? host_resources() : cuda_resources()); });
  state_->streams =
      backend == "cpu" ? make_cpu_streams(std::move(bound)) : make_cuda_streams(std::move(bound));
  // A peer may post a flag here as soon as it runs.
  world.barrier();
}

ScheduleRun::~ScheduleRun() { system::keep_if_forked(state_); }
ScheduleRun::ScheduleRun(ScheduleRun&&) noexcept = default;
ScheduleRun& ScheduleRun::operator=(ScheduleRun&& other) noexcept {
  system::replace(state_, other.state_);
  return *this;
}

void ScheduleRun::run(void* stream) {
  state_->check_world();
  state_->streams->run(stream);
}

void ScheduleRun::synchronize(void* stream) {
  state_->check_world();
  state_->streams->synchronize(stream);
}

void ScheduleRun::check() {
  state_->check_world();
  state_->streams->check();
}

void* ScheduleRun::buffer(std::string_view tensor) const {
  return state_->streams->buffer(uint32_t(state_->tensor(tensor)));
}
uint64_t ScheduleRun::bytes(std::string_view tensor) const {
  return state_->shapes.tensors[state_->tensor(tensor)].bytes;
}
std::vector<uint64_t> ScheduleRun::shape(std::string_view tensor) const {
  return state_->shapes.tensors[state_->tensor(tensor)].shape;
}
std::vector<std::string> ScheduleRun::streams() const { return state_->shapes.streams; }

}  // namespace chorale
