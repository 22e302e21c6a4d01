#include "communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chorale/collective.hpp>
#include <chorale/compile.hpp>
#include <chorale/layout.hpp>
#include <chorale/make_plan.hpp>
#include <chorale/storage.hpp>

#include "log.hpp"
#include "outcome.hpp"

namespace chorale::nccl {
namespace {

static_assert(std::all_of(functions.begin(), functions.end(),
                          [](const FunctionInfo& one) {
                            const CollectiveInfo& row = collective_info(one.collective);
                            return one.collective.empty() ||
                                   (row.is_standard() &&
                                    row.only_root_sends() == (one.buffers == Buffers::root_sends) &&
                                    row.only_root_receives() == (one.buffers == Buffers::root_receives));
                          }),
              "functions.def and collectives.def disagree");

/// Returns whether the environment tells the library to treat all buffers as if peers could not access them.
bool always_copies() {
  const char* const value = std::getenv("CHORALE_NCCL_COPIES");
  if (!value || std::string_view(value) == "auto") return false;
  if (std::string_view(value) == "always") return true;
  throw CallError(ncclInvalidUsage,
                  fmt::format("CHORALE_NCCL_COPIES is '{}', but must be 'auto' or 'always'", value));
}

/// Returns whether a program has a form that copies the own part of each rank.
bool can_copy(const std::string& program) {
  const auto& all = dsl::programs();
  const auto named = [&](const dsl::RegisteredProgram& one) { return one.name == program; };
  if (std::none_of(all.begin(), all.end(), named)) return false;
  const std::vector<dsl::Parameter> parameters = dsl::describe(program).parameters;
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const dsl::Parameter& one) { return one.name == "copies"; });
}

/// Returns a plan that is right in place and not, and does what `plan` does; nothing if there is none.
std::optional<Plan> in_place_too(const Plan& plan, int ranks) {
  std::optional<Plan> both = also_in_place(plan);
  if (both || !can_copy(plan.name)) return both;
  // In place, a thread block of the shipped plan unpacks what another one still reads. With copies, each
  // thread block unpacks only into what it has sent itself.
  const size_t blocks = plan.gpus.front().threadblocks.size();
  return also_in_place(
      make_plan(plan.name, ranks, {{"copies", "true"}, {"instances", std::to_string(blocks)}}));
}

/// Returns whether ranks access the buffers of others.
bool peers_access(const Plan& plan) {
  return reached_by_peers(plan, BufferKind::input) || reached_by_peers(plan, BufferKind::output);
}

/// Says which buffers of a call this rank uses.
struct Uses {
  bool send, recv;
};
Uses uses(const Task& task, int rank) {
  const bool root = task.root == rank;
  switch (info(task.function).buffers) {
    case Buffers::none:
    case Buffers::both:
      return {true, true};
    case Buffers::root_sends:
      return {root, true};
    case Buffers::root_receives:
      return {true, root};
    case Buffers::send:
      return {true, false};
    case Buffers::receive:
      return {false, true};
  }
  return {true, true};
}

}  // namespace

Config config_of_process() {
  Config config = Config::load();
  if (config.backend.from == "default") config.backend = "cuda";
  if (config.timeout.from == "default") config.timeout = std::chrono::minutes(10);
  return config;
}

Backend backend_of(const Config& config) {
  return config.backend.value == "cpu" ? Backend::cpu : Backend::cuda;
}

bool Task::sends_messages() const { return info(function).sends_messages(); }

Communicator::Communicator(World world, const Config& config, std::shared_ptr<Device> device)
    : copies_always_(always_copies()),
      world_(std::move(world)),
      config_(config),
      device_(std::move(device)),
      executor_([&]() -> Executor {
        const auto on = device_->make_current();
        return Executor(world_, config_);
      }()),
      plans_(plans_for(world_, config.backend.value, device_->name(), config.max_blocks)) {
  const auto on = device_->make_current();
  // All ranks make it now, because later only some of them may call, which send and receive.
  if (ranks() > 1) exchange_ = std::make_unique<Exchange>(world_, ExchangeOptions{}, config_);
}

Communicator::~Communicator() {
  outcome_of([&] {
    const auto on = device_->make_current();
    exchange_.reset();
  });
}

void Communicator::check_task(Task& task) const {
  const uint64_t element = element_bytes(task.type);
  if (collective_reduces(info(task.function).collective) && (task.op < 0 || task.op >= ncclNumOps)) {
    task.factor = operators_.factor(task.op, task.type);
    task.op = ncclSum;
  }
  if (info(task.function).has_root() && (task.root < 0 || task.root >= ranks())) {
    throw CallError(ncclInvalidArgument,
                    fmt::format("there is no rank {} in a communicator of {} ranks", task.root, ranks()));
  }
  if (task.count > UINT64_MAX / 2 / element / uint64_t(ranks())) {
    throw CallError(ncclInvalidArgument,
                    fmt::format("{} elements of {} bytes for {} ranks are more than memory has", task.count,
                                element, ranks()));
  }
  if (task.count == 0) return;
  const Uses used = uses(task, rank());
  if (used.send && !task.send) throw CallError(ncclInvalidArgument, "sendbuff is null");
  if (used.recv && !task.recv) throw CallError(ncclInvalidArgument, "recvbuff is null");
}

Communicator::Collective Communicator::collective_of(const Task& task) const {
  const FunctionInfo& function = info(task.function);
  const CollectiveInfo& row = collective_info(function.collective);
  const uint64_t parts = std::max(row.input_parts(uint64_t(ranks())), row.output_parts(uint64_t(ranks())));
  Collective made;
  // A rank may pass any address for a buffer that it does not use, such as the output of a reduce on other
  // ranks than the root.
  const Uses used = uses(task, rank());
  made.arguments.in = used.send ? task.send : nullptr;
  made.arguments.out = used.recv ? task.recv : nullptr;
  made.arguments.bytes = task.count * element_bytes(task.type) * parts;
  made.arguments.dtype = DType::u8;  // what only moves elements moves bytes
  if (row.reduces()) {
    const Reduction reduction = reduction_of(task.type, task.op);
    made.arguments.dtype = reduction.dtype;
    made.arguments.op = reduction.op;
  }
  made.shape = {function.collective, made.arguments.bytes, made.arguments.dtype,
                row.has_root() ? task.root : 0};
  made.has_root = function.has_root();
  return made;
}

uint64_t Communicator::tuned_bytes(const Shape& shape) {
  if (shape.bytes <= Executor::most_direct) return shape.bytes;
  const TunedPlans::Choice choice = choose(shape, shape.bytes);
  return !choice.own && peers_access(plans_.plan(choice)) ? Executor::most_direct : shape.bytes;
}

TunedPlans::Choice Communicator::choose(const Shape& shape, uint64_t bytes) const {
  return plans_.choose(std::string(shape.collective), bytes, shape.dtype);
}

Communicator::Chosen& Communicator::chosen(const Shape& shape) {
  const auto known = chosen_.find(shape);
  if (known != chosen_.end()) return known->second;
  constexpr size_t most_known = 4096;
  if (chosen_.size() >= most_known) chosen_.clear();
  if (!shape.program.empty()) {
    const std::string program(shape.program);
    return remember(shape, made(program, shape.root), std::nullopt, program);
  }
  const TunedPlans::Choice choice = choose(shape, tuned_bytes(shape));
  if (shape.root == 0) return remember(shape, plans_.plan(choice), choice.packet, choice.words());
  // The plans in tables have root 0, and so have plans of the user.
  const std::string program = choice.own ? plans_.name_for_roots(shape.collective) : choice.name;
  return remember(shape, made(program, shape.root), choice.own ? std::nullopt : choice.packet,
                  fmt::format("{}, made for root {}", program, shape.root));
}

const Plan& Communicator::made(const std::string& program, int root) {
  const std::pair key(program, root);
  const auto known = made_.find(key);
  if (known != made_.end()) return known->second;
  dsl::Parameters::Settings settings;
  if (root != 0) settings["root"] = std::to_string(root);
  return made_.emplace(key, make_plan(program, ranks(), settings)).first->second;
}

Communicator::Chosen& Communicator::remember(const Shape& shape, const Plan& plan,
                                             std::optional<PacketForm> packet, const std::string& words) {
  auto proved = in_place_.find(&plan);
  if (proved == in_place_.end()) proved = in_place_.emplace(&plan, in_place_too(plan, ranks())).first;
  const std::optional<Plan>& both = proved->second;
  return chosen_
      .emplace(shape, Chosen{both ? &*both : &plan, packet, both.has_value(), peers_access(plan), words})
      .first->second;
}

void Communicator::add_window(const void* at, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  windows_.push_back({static_cast<const char*>(at), bytes});
}

void Communicator::remove_window(const void* at) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found =
      std::find_if(windows_.begin(), windows_.end(), [at](const Window& one) { return one.at == at; });
  if (found != windows_.end()) windows_.erase(found);
}

bool Communicator::in_windows(const void* at, uint64_t bytes) const {
  const char* const begin = static_cast<const char*>(at);
  return std::any_of(windows_.begin(), windows_.end(), [&](const Window& one) {
    return begin >= one.at && begin + bytes <= one.at + one.bytes;
  });
}

bool Communicator::is_direct(const Chosen& choice, const Collective& collective) const {
  if (windows_.empty() || collective.has_root) return false;
  const Arguments& arguments = collective.arguments;
  const MessageSizes sizes = layout_of(*choice.plan, arguments.bytes, arguments.dtype).sizes;
  return in_windows(arguments.in, sizes.input) && in_windows(arguments.out, sizes.output);
}

std::string_view Communicator::why_other_steps(const Collective& collective) {
  if (copies_always_) return "CHORALE_NCCL_COPIES is 'always'";
  Chosen& choice = chosen(collective.shape);
  if (is_direct(choice, collective)) return "";
  const bool on_gpus = backend_of(config_) == Backend::cuda;
  if (on_gpus && collective_info(collective.shape.collective).only_root_sends() && ranks() == 2 &&
      choice.peers_access)
    return "a broadcast to one GPU is a message";
  if (!choice.peers_map.value_or(true)) return "needs memory that all peers can map, or that is registered";
  if (!choice.stages) choice.stages = executor_.stages(*choice.plan, collective.arguments);
  if (*choice.stages) return "needs registered buffers, or at most 16 ranks and parts of whole 16 bytes";
  return "";
}

void Communicator::execute(const Collective& collective, cudaStream_t stream) {
  Chosen& choice = chosen(collective.shape);
  Arguments arguments = collective.arguments;
  arguments.packet = choice.packet;
  arguments.proved_in_place = choice.in_place;
  const bool direct = is_direct(choice, collective);
  // NCCL allows a capture of a call that has not run before.
  if (device_->capturing(stream) && !is_bound(collective))
    direct ? executor_.prepare(*choice.plan, arguments) : executor_.prepare_staged(*choice.plan, arguments);
  direct ? executor_.execute(*choice.plan, arguments, stream)
         : executor_.execute_staged(*choice.plan, arguments, stream);
  if (direct || !choice.peers_access) return;
  log_copy(collective);
  // Later calls probably have memory of the same kind. All ranks get the same answer.
  if (!choice.peers_map) choice.peers_map = executor_.peers_map(*choice.plan, arguments);
}

bool Communicator::is_bound(const Collective& collective) {
  const auto known = chosen_.find(collective.shape);
  if (known == chosen_.end()) return false;
  const Chosen& choice = known->second;
  Arguments arguments = collective.arguments;
  arguments.packet = choice.packet;
  arguments.proved_in_place = choice.in_place;
  return is_direct(choice, collective) ? executor_.is_bound(*choice.plan, arguments)
                                       : executor_.is_bound_staged(*choice.plan, arguments);
}

/// Runs a call of a communicator with one rank, which copies its input.
void Communicator::run_alone(const Task& task) {
  if (task.send && task.recv && task.send != task.recv)
    device_->copy(task.recv, task.send, task.count * element_bytes(task.type), task.stream);
}

void Communicator::run_collective(const Task& task) {
  if (task.factor) return run_scaled(task);
  if (ranks() == 1) return run_alone(task);
  const Collective collective = collective_of(task);
  const std::vector<CallPart> steps = steps_of(task, collective);
  log_plans(task, collective, steps);
  for (const CallPart& step : steps) {
    if (step.collective) {
      execute(*step.collective, task.stream);
    } else {
      run_messages(step.messages, task.stream);
    }
  }
}

bool Communicator::only_enqueues(std::span<const Task> tasks) {
  if (backend_of(config_) == Backend::cpu) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::all_of(tasks.begin(), tasks.end(), [this](const Task& task) { return enqueues(task); });
}

bool Communicator::enqueues(const Task& task) {
  if (task.sends_messages() || task.count == 0 || ranks() == 1) return true;
  if (task.factor) {
    const std::vector<Scaled> parts = scaled_parts(task);
    return std::all_of(parts.begin(), parts.end(), [this](const Scaled& part) { return enqueues(part.sum); });
  }
  const std::vector<CallPart> steps = steps_of(task, collective_of(task));
  return std::all_of(steps.begin(), steps.end(),
                     [this](const CallPart& step) { return !step.collective || is_bound(*step.collective); });
}

void Communicator::run(std::span<const Task> tasks) {
  const auto does_nothing = [](const Task& task) { return task.count == 0 && !task.sends_messages(); };
  if (std::all_of(tasks.begin(), tasks.end(), does_nothing)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto on = device_->make_current();
  std::vector<Task> messages;
  for (const Task& task : tasks) {
    if (task.sends_messages()) {
      messages.push_back(task);
      continue;
    }
    if (does_nothing(task)) continue;
    device_->begin({&task.stream, 1});
    try {
      run_collective(task);
    } catch (...) {
      // A part of the work may have been enqueued.
      outcome_of([&] { device_->end({&task.stream, 1}); });
      throw;
    }
    device_->end({&task.stream, 1});
  }
  if (messages.empty()) return;
  Messages all;
  std::vector<cudaStream_t> streams;
  for (const Task& task : messages) {
    add_messages(task, all);
    if (std::find(streams.begin(), streams.end(), task.stream) == streams.end())
      streams.push_back(task.stream);
  }
  device_->begin(streams);
  run_messages(all, streams.front());
  device_->end(streams);
}

void Communicator::check() { executor_.check(); }

void Communicator::finish() {
  device_->wait();
  world_.barrier();
}

// A new world is made only when all ranks that are left call this, so their work has ended. The new world is
// not used.
void Communicator::end_stopped() {
  device_->wait_for_all();
  world_.survivors();
}

}  // namespace chorale::nccl
