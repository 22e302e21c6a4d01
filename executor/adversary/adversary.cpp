#include "chorale/adversary.hpp"

#include <algorithm>

#include "engine.hpp"

namespace chorale {

const char* name(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::Kind::ok:
      return "ok";
    case Verdict::Kind::refused:
      return "refused";
    case Verdict::Kind::wrong_result:
      return "wrong_result";
    case Verdict::Kind::overwrite_seen:
      return "overwrite_seen";
    case Verdict::Kind::late_write:
      return "late_write";
    case Verdict::Kind::deadlock:
      return "deadlock";
    case Verdict::Kind::too_long:
      return "too_long";
  }
  return "?";
}

namespace {

/// Holds the plan for one message. The last two kinds of turns exist only if we choose the message, and only
/// for plans with pipelines that accept messages that short.
struct Machine {
  enum Turns : uint8_t { as_chosen, longer_than_a_chunk, one, kinds };
  Plan plan;
  std::optional<adversary::Program> program;
  std::optional<adversary::Engine> engine;
};

}  // namespace

struct Adversary::Parts {
  Plan plan;
  AdversaryOptions options;
  Verdict refusal;
  bool takes[Machine::kinds] = {true};
  std::unique_ptr<Machine> machines[Machine::kinds];

  Parts(const Plan& of, const AdversaryOptions& with) : plan(of), options(with) {
    try {
      if (options.bytes == 0) {
        if (!plan.extension.codecs.empty() && !has_codecs(options.dtype)) options.dtype = DType::f32;
        for (const auto turns : {Machine::longer_than_a_chunk, Machine::one}) {
          takes[turns] = has_pipelines() && adversary::takes_long_turns(plan, options.dtype, options.packet,
                                                                        turns == Machine::one);
        }
        options.bytes = adversary::choose_size(plan, options.dtype, options.packet);
      }
      machine(Machine::as_chosen);
    } catch (const UsageError& wrong) {
      refusal.kind = Verdict::Kind::refused;
      refusal.text = wrong.what();
    }
  }

  bool has_pipelines() const {
    bool any = false;
    for (const Gpu& gpu : plan.gpus) {
      for (const ThreadBlock& block : gpu.threadblocks)
        any |= std::any_of(block.ops.begin(), block.ops.end(), [](const Op& op) { return op.body != 0; });
    }
    return any;
  }

  Machine& machine(Machine::Turns turns) {
    if (machines[turns]) return *machines[turns];
    auto made = std::make_unique<Machine>();
    made->plan = plan;
    if (turns != Machine::as_chosen)
      adversary::lengthen_turns(made->plan, options.bytes, options.dtype, options.packet,
                                turns == Machine::one);
    made->program.emplace(made->plan, options);
    made->engine.emplace(made->plan, *made->program, options);
    machines[turns] = std::move(made);
    return *machines[turns];
  }

  /// Returns the machine for a seed. Half of the schedules have several turns per chunk, and the others have
  /// several chunks per turn.
  Machine& machine_of(uint64_t seed) {
    const Machine::Turns turns = seed % 4 < 2    ? Machine::as_chosen
                                 : seed % 4 == 2 ? Machine::longer_than_a_chunk
                                                 : Machine::one;
    return machine(takes[turns] ? turns : Machine::as_chosen);
  }
};

Adversary::Adversary(const Plan& plan, const AdversaryOptions& options)
    : parts_(std::make_unique<Parts>(plan, options)) {}
Adversary::~Adversary() = default;
Adversary::Adversary(Adversary&&) noexcept = default;
Adversary& Adversary::operator=(Adversary&&) noexcept = default;

Verdict Adversary::run(uint64_t seed) {
  if (parts_->refusal.ok()) return parts_->machine_of(seed).engine->run(seed);
  Verdict verdict = parts_->refusal;
  verdict.seed = seed;
  return verdict;
}

Verdict Adversary::run_all(uint64_t first, uint64_t schedules) {
  Verdict verdict;
  uint64_t steps = 0;
  for (uint64_t done = 0; done < schedules && verdict.ok(); ++done) {
    verdict = run(first + done);
    steps += verdict.steps;
  }
  verdict.steps = steps;
  return verdict;
}

uint64_t Adversary::bytes() const { return parts_->options.bytes; }

}  // namespace chorale
