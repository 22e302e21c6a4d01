#pragma once
/// \file
/// Runs a plan as badly as its memory model allows, and checks that the results are still right.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "chorale/executor.hpp"
#include "chorale/plan.hpp"

namespace chorale {

/// Says what the adversarial machine runs, and for how long.
struct AdversaryOptions {
  /// The size of the message. 0 stands for a few units a chunk, which shows any order that a large message
  /// shows. The units of pipelines then shrink in proportion; in half of the schedules they are longer than a
  /// chunk instead, if the plan takes messages so short.
  uint64_t bytes = 0;
  DType dtype = DType::u8;  ///< what `bytes` must be a multiple of; the data are integers all the same
  PacketForm packet = PacketForm::ll8;
  uint32_t launches = 3;              ///< back to back, with new data each, without a barrier of the ranks
  std::optional<bool> in_place = {};  ///< input and output are one buffer; default: as the plan says
  uint64_t max_steps = uint64_t(1) << 28;  ///< the limit of one schedule
};

/// Says how one schedule ended.
struct Verdict {
  enum class Kind : uint8_t {
    ok,
    refused,  ///< nothing ran: an operand is out of bounds, or something else cannot be bound to the message
    wrong_result,    ///< an output does not hold what the collective promises
    overwrite_seen,  ///< the same, and the wrong value came from what the application wrote between launches
    late_write,      ///< somebody writes the application's buffers between launches
    deadlock,
    too_long,  ///< more than max_steps
  };

  Kind kind = Kind::ok;
  uint64_t seed = 0, steps = 0;  ///< of the schedule
  uint32_t rank = 0;             ///< the rank whose output is wrong, or one that is stuck
  uint64_t byte = 0;             ///< the first wrong byte of that output
  uint32_t launch = 0;           ///< from 1
  std::string text;              ///< the finding in words; empty if ok

  bool ok() const { return kind == Kind::ok; }
  bool operator==(const Verdict&) const = default;
};

/// "ok", "wrong_result", ...
const char* name(Verdict::Kind);

/// Runs one plan on a machine that keeps what docs/memory-model.md promises and nothing else. It has no
/// threads of its own and moves no bytes: each cell of the message, a unit of 16 bytes as a rule, is one
/// exact integer.
///
/// The threads of a block run apart and meet only where the block synchronises. Others see their stores late
/// and in any order, except for what a release holds back. Plain loads may see values that were overwritten,
/// up to what an acquire has shown. Packets come one by one. Proxies read sources and write destinations at
/// any time. Ranks run at any speed, and enter the next launch while others are in this one. The application
/// overwrites the input, and reads and overwrites the output, as soon as its rank's launch has ended. The
/// machine is stricter than the model in one point: it does not delay a load past later stores of its thread.
class Adversary {
 public:
  /// Keeps a copy of the plan. A plan that cannot be bound is no error here: every run() then says `refused`.
  explicit Adversary(const Plan&, const AdversaryOptions& = {});
  ~Adversary();
  Adversary(Adversary&&) noexcept;
  Adversary& operator=(Adversary&&) noexcept;

  /// Runs one schedule, drawn from `seed`. The same seed gives the same verdict on every machine.
  Verdict run(uint64_t seed);

  /// Runs up to `schedules` schedules with the seeds `first`, `first` + 1, ..., and stops at the first that
  /// is not ok. The verdict's steps are those of all schedules together.
  Verdict run_all(uint64_t first, uint64_t schedules);

  /// Returns the size of the message.
  uint64_t bytes() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace chorale
