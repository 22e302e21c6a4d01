#include "chorale/executor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "backend.hpp"
#include "interpreter/layout.hpp"
#include "interpreter/plan_hash.hpp"

namespace chorale {
namespace {

/// What ranks compare before they bind.
struct Fingerprint {
  uint64_t plan_hash = 0;
  uint64_t bytes = 0;
  uint32_t ranks = 0;
  int32_t dtype = 0, op = -1, packet = 0;
};

std::string op_text(int32_t op) { return op < 0 ? "the plan's" : reduce_op_name(ReduceOp(op)); }
std::string packet_text(int32_t packet) { return std::string(packet_form_names[size_t(packet)]); }

/// Throws on all ranks if one of them is about to run something else.
void compare(World& world, const Plan& plan, const Call& call) {
  const Fingerprint mine{call.plan_hash,      call.bytes, plan.ranks(),
                         int32_t(call.dtype), call.op,    int32_t(call.packet)};
  std::vector<std::byte> message(sizeof mine + plan.name.size());
  std::memcpy(message.data(), &mine, sizeof mine);
  std::memcpy(message.data() + sizeof mine, plan.name.data(), plan.name.size());
  const auto all = world.allgather(message);
  const auto of = [&](size_t rank) {
    Fingerprint print;
    std::memcpy(&print, all[rank].data(), std::min(sizeof print, all[rank].size()));
    return print;
  };
  const auto plan_text = [&](size_t rank) {
    const char* const name = reinterpret_cast<const char*>(all[rank].data()) + sizeof mine;
    return fmt::format("'{}' ({:016x})", std::string(name, all[rank].size() - sizeof mine),
                       of(rank).plan_hash);
  };
  const Fingerprint first = of(0);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    const Fingerprint other = of(rank);
    const auto differ = [&](const char* what, const std::string& a, const std::string& b) {
      throw RunError(RunError::Reason::mismatch,
                     fmt::format("ranks 0 and {} disagree on {}: {} and {}", rank, what, a, b));
    };
    if (other.plan_hash != first.plan_hash) differ("the plan", plan_text(0), plan_text(rank));
    if (other.bytes != first.bytes) differ("bytes", std::to_string(first.bytes), std::to_string(other.bytes));
    if (other.dtype != first.dtype)
      differ("dtype", dtype_name(DType(first.dtype)), dtype_name(DType(other.dtype)));
    if (other.op != first.op) differ("op", op_text(first.op), op_text(other.op));
    if (other.packet != first.packet) differ("packet", packet_text(first.packet), packet_text(other.packet));
  }
}

}  // namespace

struct Executor::State {
  World& world;
  Config config;
  PacketForm packet;
  uint64_t resets;      ///< of the world, when the bindings were made
  bool failed = false;  ///< a run has; until the world is reset
  std::unique_ptr<Backend> backend;
  std::vector<std::unique_ptr<Binding>> bindings;
  Binding* last = nullptr;

  /// Plans by where they are: hashing their text takes too long for every call.
  struct Known {
    const Plan* plan;
    uint64_t memory_hash, content_hash;
  };
  std::vector<Known> known;
  size_t last_known = 0;

  State(World& of, const Config& with) : world(of), config(with), resets(of.resets()) {
    const std::string name = config.backend, form = config.packet;
    const auto named = std::find(std::begin(packet_form_names), std::end(packet_form_names), form);
    if (named == std::end(packet_form_names)) {
      throw UsageError(fmt::format("packet '{}': none of {}", form, fmt::join(packet_form_names, ", ")));
    }
    packet = PacketForm(named - std::begin(packet_form_names));
    if (name == "cpu") {
      backend = make_cpu_backend(world);
    } else if (name == "cuda") {
      backend = make_cuda_backend(world, config);
    } else {
      throw UsageError(fmt::format("backend '{}': neither 'cpu' nor 'cuda'", name));
    }
  }

  uint64_t hash_of(const Plan& plan) {
    const uint64_t hash = interpreter::memory_hash(plan, uint32_t(world.rank()));
    for (size_t look = 0; look < known.size(); ++look) {
      const size_t at = (last_known + look) % known.size();
      if (known[at].plan != &plan) continue;
      last_known = at;
      if (known[at].memory_hash != hash) known[at] = {&plan, hash, interpreter::content_hash(plan)};
      return known[at].content_hash;
    }
    known.push_back({&plan, hash, interpreter::content_hash(plan)});
    last_known = known.size() - 1;
    return known.back().content_hash;
  }

  /// The binding for a call, made if there is none; null if there is nothing to do.
  Binding* bind(const Plan& plan, const Arguments& arguments, void* stream) {
    backend->check();
    if (resets != world.resets()) {
      bindings.clear();
      last = nullptr;
      failed = false;
      resets = world.resets();
    }
    if (failed)
      throw RunError(RunError::Reason::other, "an earlier run has failed: call World::reset() on all ranks");
    if (plan.ranks() != uint32_t(world.ranks())) {
      throw UsageError(fmt::format("plan '{}' is for {} ranks, but the world has {}", plan.name, plan.ranks(),
                                   world.ranks()));
    }
    if (config.require_proof.value && plan.extension.verified.empty()) {
      throw UsageError(fmt::format("plan '{}' carries no proof, which require_proof asks for ({})", plan.name,
                                   config.require_proof.from));
    }
    const Call call{hash_of(plan), arguments.bytes, arguments.dtype,
                    arguments.op ? int32_t(*arguments.op) : -1, arguments.packet.value_or(packet)};
    const auto fits = [&](Binding& binding) { return binding.call() == call && binding.serves(arguments); };
    if (last && fits(*last)) return last;
    last = nullptr;
    for (const auto& binding : bindings) {
      if (fits(*binding)) return last = binding.get();
    }
    backend->require_bindable(stream);
    compare(world, plan, call);
    if (call.bytes == 0) {
      interpreter::layout_of(plan, 0, call.dtype, call.packet);
      return nullptr;
    }
    bindings.push_back(backend->bind(plan, call, arguments));
    return last = bindings.back().get();
  }
};

Executor::Executor(World& world, const Config& config) : state_(std::make_unique<State>(world, config)) {}
Executor::~Executor() = default;
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&&) noexcept = default;

void Executor::prepare(const Plan& plan, const Arguments& arguments) {
  if (Binding* const binding = state_->bind(plan, arguments, nullptr)) binding->prepare(arguments);
}

void Executor::execute(const Plan& plan, const Arguments& arguments, void* stream) {
  Binding* const binding = state_->bind(plan, arguments, stream);
  if (!binding) return;
  try {
    binding->run(plan, arguments, stream);
  } catch (const RunError&) {
    state_->failed = true;
    throw;
  }
}

void Executor::check() { state_->backend->check(); }
void Executor::synchronize(void* stream) { state_->backend->synchronize(stream); }
std::vector<TraceSpan> Executor::trace() const {
  std::vector<TraceSpan> spans;
  for (const auto& binding : state_->bindings) binding->add_trace(spans);
  return spans;
}

void* Executor::allocate(uint64_t bytes) { return state_->backend->allocate(bytes); }

void agree_on_use(World& world, const std::string& mine) {
  const auto all = world.allgather(std::as_bytes(std::span(mine.data(), mine.size())));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    if (!mine.empty()) throw UsageError(mine);
    throw UsageError(fmt::format(
        "rank {}: {}", rank, std::string(reinterpret_cast<const char*>(all[rank].data()), all[rank].size())));
  }
}

}  // namespace chorale
