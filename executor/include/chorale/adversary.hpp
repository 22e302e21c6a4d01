#pragma once
/// \file
/// Runs a plan as badly as its memory model allows, and looks whether its results stand.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "chorale/executor.hpp"
#include "chorale/plan.hpp"

namespace chorale {

/// What the adversarial machine runs, and for how long.
struct AdversaryOptions {
  /// Of the message. 0: a few units a chunk, which shows any order that a large message shows; the units of
  /// pipelines are then made small as well, in proportion, or in half of the schedules longer than a chunk,
  /// if the plan takes messages so short.
  uint64_t bytes = 0;
  DType dtype = DType::u8;  ///< what `bytes` must be a multiple of; the data are integers all the same
  PacketForm packet = PacketForm::ll8;
  uint32_t launches = 3;              ///< back to back, with new data each, without a barrier of the ranks
  std::optional<bool> in_place = {};  ///< input and output are one buffer; default: as the plan says
  uint64_t max_steps = uint64_t(1) << 28;  ///< of a schedule
};

/// What came of one schedule.
struct Verdict {
  enum class Kind : uint8_t {
    ok,
    refused,         ///< nothing ran: an operand out of bounds, or what else cannot be bound to the message
    wrong_result,    ///< an output does not hold what the collective promises
    overwrite_seen,  ///< the same, made from what the application wrote between launches
    late_write,      ///< somebody writes the application's buffers between launches
    deadlock,
    too_long,  ///< more than max_steps
  };

  Kind kind = Kind::ok;
  uint64_t seed = 0, steps = 0;  ///< of the schedule
  uint32_t rank = 0;             ///< whose output is wrong, or one that is stuck
  uint64_t byte = 0;             ///< of that output, the first that is wrong
  uint32_t launch = 0;           ///< from 1
  std::string text;              ///< the finding in words; empty if ok

  bool ok() const { return kind == Kind::ok; }
  bool operator==(const Verdict&) const = default;
};

/// "ok", "wrong_result", ...
const char* name(Verdict::Kind);

/// A machine for one plan that keeps what docs/memory-model.md promises and nothing else. It has no threads
/// of its own and moves no bytes: each cell of the message, a unit of 16 bytes as a rule, is one exact
/// integer.
///
/// The threads of a block run apart and meet only where the block synchronises. What they store is seen by
/// others late and in any order, but for what a release holds back; plain loads may see what was overwritten,
/// up to what an acquire has shown. Packets come one by one. Proxies read sources and write
/// destinations at their leisure. Ranks run at any speed, and enter the next launch while others are
/// in this one. The application overwrites the input, and reads and overwrites the output, as soon as its
/// rank's launch has ended. Loads are not put off behind later stores of their thread: this much is kept that
/// the model does not promise.
class Adversary {
 public:
  /// Keeps a copy of the plan. A plan that cannot be bound is no error: every run() says `refused`.
  explicit Adversary(const Plan&, const AdversaryOptions& = {});
  ~Adversary();
  Adversary(Adversary&&) noexcept;
  Adversary& operator=(Adversary&&) noexcept;

  /// One schedule, drawn from `seed`: the same seed gives the same verdict on every machine.
  Verdict run(uint64_t seed);

  /// Up to `schedules` of them, with seeds `first`, `first` + 1, ...; ends at the first that is not ok. Its
  /// steps are those of all.
  Verdict run_all(uint64_t first, uint64_t schedules);

  /// Of the message.
  uint64_t bytes() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace chorale
