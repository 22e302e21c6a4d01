#include "chorale/adversary.hpp"

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

struct Adversary::Parts {
  Plan plan;
  AdversaryOptions options;
  Verdict refusal;
  std::optional<adversary::Program> program;
  std::optional<adversary::Engine> engine;

  Parts(const Plan& of, const AdversaryOptions& with) : plan(of), options(with) {
    try {
      if (options.bytes == 0) options.bytes = adversary::choose_size(plan, options.dtype, options.packet);
      program.emplace(plan, options);
      engine.emplace(plan, *program, options);
    } catch (const UsageError& wrong) {
      refusal.kind = Verdict::Kind::refused;
      refusal.text = wrong.what();
    }
  }
};

Adversary::Adversary(const Plan& plan, const AdversaryOptions& options)
    : parts_(std::make_unique<Parts>(plan, options)) {}
Adversary::~Adversary() = default;
Adversary::Adversary(Adversary&&) noexcept = default;
Adversary& Adversary::operator=(Adversary&&) noexcept = default;

Verdict Adversary::run(uint64_t seed) {
  if (parts_->engine) return parts_->engine->run(seed);
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
