#include "chorale/executor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <cstdlib>
#include <vector>

#include "bindings.hpp"
#include "chorale/content_hash.hpp"
#include "chorale/layout.hpp"
#include "chorale/needs.hpp"
#include "chorale/proof.hpp"
#include "chorale/scratch.hpp"
#include "executor/binding/agreement.hpp"
#include "executor/binding/backend.hpp"
#include "executor/binding/launch_count.hpp"
#include "executor/lowering/bind.hpp"
#include "executor/system/fork.hpp"
#include "executor/system/one_call.hpp"
#include "executor/system/thrown.hpp"
#include "executor/system/warn.hpp"
#include "executor/world/group.hpp"
#include "staging.hpp"
#include "switch_channels.hpp"

namespace chorale {

struct Executor::State {
  World& world;
  const system::Origin origin;
  Config config;
  std::optional<PacketForm> packet;  ///< none: auto
  bool multicast;                    ///< switch channels use multicast
  uint64_t resets;                   ///< the world's resets() when the bindings were made
  bool failed = false;               ///< whether a run has failed since the last reset of the world
  std::atomic<bool> in_use{false};
  std::unique_ptr<Backend> backend;
  std::optional<Staging> staging;  ///< has a value from the constructor on
  std::string why_copied;          ///< see Executor::why_copied()
  Bindings bindings;
  LaunchCount launches;

  OneCall one_call() { return OneCall(in_use, "an executor"); }

  /// Caches the hash of a plan's content, because it takes too long to compute in every call.
  struct Known {
    uint64_t identity, hash;
  };
  static constexpr size_t most_known = 256;
  std::vector<Known> known;
  size_t last_known = 0;

  State(World& of, const Config& with)
      : world(of),
        config(with),
        resets(of.resets()),
        bindings(config.bindings, config.scratch),
        launches(of) {
    const std::string name = config.backend, form = config.packet;
    packet = packet_form_of(form);
    if (!packet && form != packet_form_auto)
      throw UsageError(fmt::format("packet form '{}' is unknown: use one of {}, or {}", form,
                                   fmt::join(packet_form_names, ", "), packet_form_auto));
    multicast = name == "cuda" && wants_multicast(config, std::getenv("NCCL_NVLS_ENABLE"));
    if (name == "cpu") {
      backend = make_cpu_backend(world, config);
    } else if (name == "cuda") {
      backend = make_cuda_backend(world, config);
    } else {
      throw UsageError(fmt::format("backend '{}' is unknown: use 'cpu' or 'cuda'", name));
    }
    staging.emplace(*backend, Staging::most_bytes, multicast);
  }

  void check_ranks(const Plan& plan) const {
    if (plan.gpus.empty() && plan.extension.schedule)
      throw UsageError(fmt::format("plan '{}' is a host schedule: run it with ScheduleRun", plan.name));
    if (plan.ranks() != uint32_t(world.ranks())) {
      throw UsageError(fmt::format("plan '{}' is for {} ranks, but the world has {}", plan.name, plan.ranks(),
                                   world.ranks()));
    }
  }

  /// Throws if the plan has an invalid certificate, or has none although require_proof is set.
  void check_certificate(const Plan& plan) const {
    if (plan.extension.verified.empty() && !config.require_proof.value) return;
    const std::string wrong = refute_certificate(plan);
    if (wrong.empty()) return;
    const std::string asked = config.require_proof.value
                                  ? fmt::format("; require_proof is set ({})", config.require_proof.from)
                                  : "";
    throw UsageError(fmt::format(
        "plan '{}' has no certificate that holds: {}{}. chorale compile --certify writes plans with "
        "one; chorale check PLAN --certify FILE proves a plan and writes a copy with one",
        plan.name, wrong, asked));
  }

  /// Warns about a plan with more thread blocks than the setting max_blocks. It runs, because the application
  /// has named it. One rank warns for all.
  void warn_of_blocks(const Plan& plan) const {
    const unsigned limit = config.max_blocks.value;
    const uint32_t blocks = limit != 0 && world.rank() == 0 ? plan.thread_blocks() : 0;
    if (blocks <= limit) return;
    system::warn(fmt::format(
        "plan '{}' takes {} thread blocks, but max_blocks is {} ({}), which limits only plans that "
        "are chosen by size and exchanges: compile it with fewer blocks to keep to the limit",
        plan.name, blocks, limit, config.max_blocks.from));
  }

  uint64_t hash_of(const Plan& plan) {
    const uint64_t identity = plan.identity.number();
    for (size_t look = 0; look < known.size(); ++look) {
      const size_t at = (last_known + look) % known.size();
      if (known[at].identity != identity) continue;
      last_known = at;
      return known[at].hash;
    }
    check_certificate(plan);
    warn_of_blocks(plan);
    if (known.size() == most_known) known.erase(known.begin());
    known.push_back({identity, content_hash(plan)});
    last_known = known.size() - 1;
    return known.back().hash;
  }

  /// Returns the bytes of scratch that a binding would take; 0 for a message that bind() will refuse.
  uint64_t scratch_of(const Plan& plan, const std::vector<ScratchUse>& use, const Call& call) {
    try {
      return backend->scratch_of(plan, use, call);
    } catch (const UsageError&) {
      return 0;
    }
  }

  /// Returns the form of packets of a call whose arguments name none. Kernels for multicast have LL16 only.
  PacketForm packet_form(const Plan& plan, uint64_t bytes) const {
    if (packet) return *packet;
    return multicast || !backend->has_whole_lines() ? PacketForm::ll16 : packet_form_by_size(plan, bytes);
  }

  Call call_with(const Plan& plan, uint64_t plan_hash, const Arguments& arguments,
                 const Publishing& publishing) const {
    return {plan_hash,
            arguments.bytes,
            arguments.dtype,
            arguments.op ? int32_t(*arguments.op) : -1,
            arguments.packet ? *arguments.packet : packet_form(plan, arguments.bytes),
            multicast,
            config.bindings,
            config.round_scratch,
            config.scratch,
            publishing.on,
            publishing.part_distance};
  }

  /// Returns the binding for a call, and makes it if there is none. Returns null if the message has 0 bytes.
  Binding* bind(const Plan& plan, const Arguments& arguments, void* stream, const Publishing& publishing) {
    world.scheduler().check_caller();
    backend->check();
    if (resets != world.resets()) {
      bindings.retire();
      launches.restart();
      failed = false;
      resets = world.resets();
    }
    if (failed)
      throw RunError(RunError::Reason::other, "an earlier run has failed: call World::reset() on all ranks");
    Call call = call_with(plan, 0, arguments, publishing);
    // For 0 bytes the ranks agree in every call, even while a graph is captured.
    const bool binds = call.bytes != 0;
    Binding* known = nullptr;
    std::vector<ScratchUse> use;
    uint64_t more = 0;  // the bytes of scratch that a new binding takes
    // Collect an error instead of throwing it, so that peers that bind get the reason and do not wait for
    // this rank.
    const std::optional<system::Thrown> cannot = system::thrown_by([&] {
      check_ranks(plan);
      lowering::check_numbers(call.dtype, call.packet, call.op);
      call.plan_hash = hash_of(plan);
      known = bindings.find(call, arguments);
      if (known || !binds) return;
      backend->require_bindable(stream);
      use = scratch_use(plan);
      more = scratch_of(plan, use, call);
    });
    if (known) return known;
    const bool may_evict = !cannot && binds && bindings.crowded(more) && backend->drain();
    const std::vector<uint64_t> evictable =
        agree_on_binding(world, plan, call, launches, bindings.evictable(may_evict), cannot);
    if (!binds) {
      layout_of(plan, 0, call.dtype, call.packet);
      return nullptr;
    }
    bindings.evict(evictable, more);
    if (!bindings.fits(more)) require_scratch(plan, call, more, bindings.scratch());
    return bindings.add(backend->bind(plan, use, call, arguments));
  }

  void prepare(const Plan& plan, const Arguments& arguments, const Publishing& publishing) {
    if (Binding* const binding = bind(plan, arguments, nullptr, publishing))
      binding->prepare(arguments, nullptr);
  }

  /// Returns the binding that bind() finds; null if there is none.
  Binding* find(const Plan& plan, const Arguments& arguments, const Publishing& publishing) {
    if (failed || resets != world.resets() || arguments.bytes == 0) return nullptr;
    return bindings.find(call_with(plan, hash_of(plan), arguments, publishing), arguments);
  }

  void execute(const Plan& plan, const Arguments& arguments, void* stream, const Publishing& publishing) {
    Binding* const binding = bind(plan, arguments, stream, publishing);
    if (!binding) return;
    try {
      binding->prepare(arguments, stream);
      if (publishing.on && why_copied.empty()) why_copied = binding->why_copied();
      const bool capturing = backend->capturing(stream);
      capturing ? launches.capture() : launches.add(binding->call_hash());
      if (capturing) binding->hold(stream);
      binding->run(plan, stream);
    } catch (const UsageError&) {
      throw;  // from prepare(); the launch is not counted, because nothing was launched
    } catch (const std::exception& error) {
      // Otherwise peers would wait for this rank, which has launched nothing. If the world has already
      // stopped, abort() has no effect.
      failed = true;
      world.abort(error.what());
      throw;
    }
  }

  /// Says how a call of execute_staged() runs. A plan for other ranks, or a message that it does not accept,
  /// is refused by execute() on all ranks.
  Staging::How how(const Plan& plan, const Arguments& arguments) {
    if (plan.ranks() != uint32_t(world.ranks())) return Staging::How::as_passed;
    try {
      return staging->how(plan, arguments);
    } catch (const UsageError&) {
      return Staging::How::as_passed;
    }
  }

  /// Calls `visit` with the calls of execute_staged(), and how they publish their buffers. If they go
  /// through staging, its memory must be allocated.
  template <class Visit>
  void for_each_call(const Plan& plan, const Arguments& arguments, const Visit& visit) {
    for_each_call(how(plan, arguments), plan, arguments, visit);
  }
  template <class Visit>
  void for_each_call(Staging::How how, const Plan& plan, const Arguments& arguments, const Visit& visit) {
    switch (how) {
      case Staging::How::as_passed:
        return visit(arguments, Publishing{});
      case Staging::How::published:
        return staging->for_each_published(plan, arguments, visit);
      case Staging::How::staged:
        return staging->for_each_call(plan, arguments,
                                      [&](const Arguments& piece) { visit(piece, Publishing{}); });
    }
  }
};

Executor::Executor(World& world, const Config& config) : state_(std::make_unique<State>(world, config)) {}
Executor::~Executor() { system::keep_if_forked(state_); }
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&& other) noexcept {
  system::replace(state_, other.state_);
  return *this;
}

void Executor::prepare(const Plan& plan, const Arguments& arguments) {
  const OneCall call = state_->one_call();
  state_->prepare(plan, arguments, {});
}

void Executor::execute(const Plan& plan, const Arguments& arguments, void* stream) {
  const OneCall call = state_->one_call();
  state_->execute(plan, arguments, stream, {});
}

void Executor::execute_staged(const Plan& plan, const Arguments& arguments, void* stream) {
  const OneCall call = state_->one_call();
  state_->why_copied.clear();
  const Staging::How how = state_->how(plan, arguments);
  if (how == Staging::How::staged) {
    state_->why_copied =
        state_->backend->can_publish(plan, state_->multicast)
            ? "the lengths of its parts are not whole 16 bytes"
            : "peers access buffers of no more than 16 ranks, on one host and without multicast";
    return state_->staging->run(plan, arguments, stream,
                                [&](const Arguments& piece) { state_->execute(plan, piece, stream, {}); });
  }
  state_->for_each_call(how, plan, arguments, [&](const Arguments& piece, const Publishing& publishing) {
    state_->execute(plan, piece, stream, publishing);
  });
}

void Executor::prepare_staged(const Plan& plan, const Arguments& arguments) {
  const OneCall call = state_->one_call();
  const Staging::How how = state_->how(plan, arguments);
  if (how == Staging::How::staged) state_->staging->allocate();
  state_->for_each_call(how, plan, arguments, [&](const Arguments& piece, const Publishing& publishing) {
    state_->prepare(plan, piece, publishing);
  });
}

bool Executor::stages(const Plan& plan, const Arguments& arguments) {
  const OneCall call = state_->one_call();
  return state_->how(plan, arguments) == Staging::How::staged;
}

std::string Executor::why_copied() const {
  const OneCall call = state_->one_call();
  return state_->why_copied;
}

bool Executor::peers_map(const Plan& plan, const Arguments& arguments) {
  const OneCall call = state_->one_call();
  bool all = true;
  if (state_->how(plan, arguments) != Staging::How::published) return all;
  state_->for_each_call(plan, arguments, [&](const Arguments& piece, const Publishing& publishing) {
    const Binding* const binding = state_->find(plan, piece, publishing);
    all = all && (!binding || binding->peers_map());
  });
  return all;
}

PacketForm Executor::packet_form(const Plan& plan, uint64_t bytes) const {
  return state_->packet_form(plan, bytes);
}

bool Executor::is_bound(const Plan& plan, const Arguments& arguments) {
  const OneCall call = state_->one_call();
  return state_->find(plan, arguments, {}) != nullptr;
}

bool Executor::is_bound_staged(const Plan& plan, const Arguments& arguments) {
  const OneCall call = state_->one_call();
  if (state_->how(plan, arguments) == Staging::How::staged && !state_->staging->is_allocated()) return false;
  bool bound = true;
  state_->for_each_call(plan, arguments, [&](const Arguments& piece, const Publishing& publishing) {
    bound = bound && state_->find(plan, piece, publishing) != nullptr;
  });
  return bound;
}

void Executor::scale(void* out, const void* in, uint64_t elements, DType dtype, const Factor& factor,
                     void* stream) {
  const OneCall call = state_->one_call();
  state_->backend->scale(out, in, elements, dtype, factor, stream);
}

// This reads only the world and state that the backend protects, so threads that watch a launch may call it.
void Executor::check() { state_->backend->check(); }

void Executor::synchronize(void* stream) {
  const OneCall call = state_->one_call();
  state_->backend->synchronize(stream);
}

std::vector<TraceSpan> Executor::trace() const {
  const OneCall call = state_->one_call();
  std::vector<TraceSpan> spans;
  state_->bindings.add_trace(spans);
  return spans;
}

uint64_t Executor::scratch() const {
  const OneCall call = state_->one_call();
  return state_->bindings.scratch();
}

void* Executor::allocate(uint64_t bytes) {
  const OneCall call = state_->one_call();
  void* const memory = state_->backend->allocate(bytes);
  state_->staging->add_allocated(memory, bytes);
  return memory;
}

}  // namespace chorale
