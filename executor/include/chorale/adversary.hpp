#pragma once
/// \file
/// An Adversary tests a plan on a simulated machine that reorders and delays memory accesses as far as the
/// memory model allows, and checks that the results are still right.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "chorale/packet_form.hpp"
#include "chorale/plan.hpp"
#include "chorale/types.hpp"

namespace chorale {

/// Sets what the adversarial machine runs, and for how long.
struct AdversaryOptions {
  /// Sets the bytes of the message, counted as in Arguments. 0 stands for a few units of 16 bytes per chunk,
  /// which is enough to show any order of accesses that a large message shows. The units of pipelines then
  /// shrink in proportion. In half of the schedules they are longer than a chunk instead, if the plan accepts
  /// messages that short.
  uint64_t bytes = 0;
  DType dtype = DType::u8;  ///< `bytes` must be a multiple of its size; the machine computes with integers
                            ///< for every type
  PacketForm packet = PacketForm::ll8;
  uint32_t launches = 3;                   ///< launches back to back, each with new data, without a barrier
                                           ///< between ranks
  std::optional<bool> in_place = {};       ///< input and output are one buffer; default: as the plan says
  uint64_t max_steps = uint64_t(1) << 28;  ///< the most steps (accesses and waits) in one schedule
};

/// Describes how one schedule ended. A schedule is one order in which the machine makes the accesses.
struct Verdict {
  enum class Kind : uint8_t {
    ok,
    refused,  ///< nothing ran, because an operand is out of bounds or the plan cannot be bound to the message
    wrong_result,    ///< an output does not hold what the collective promises
    overwrite_seen,  ///< as wrong_result, and the wrong value is one that the application wrote before
                     ///< the first launch, or between launches
    late_write,      ///< the plan writes the application's buffers between launches
    deadlock,
    too_long,  ///< the schedule takes more than max_steps
  };

  Kind kind = Kind::ok;
  uint64_t seed = 0, steps = 0;  ///< the schedule's seed, and its number of steps
  uint32_t rank = 0;             ///< the rank whose output is wrong, or one that is stuck
  uint64_t byte = 0;             ///< the first wrong byte of that output
  uint32_t launch = 0;           ///< from 1
  std::string text;              ///< a description of the error; empty if ok

  bool ok() const { return kind == Kind::ok; }
  bool operator==(const Verdict&) const = default;
};

/// Returns the name of a kind: "ok", "wrong_result", ...
const char* name(Verdict::Kind);

/// Runs one plan on a simulated machine that keeps the promises of docs/memory-model.md and no others. It
/// starts no threads and moves no bytes. Each cell of the message, usually a unit of 16 bytes, is one exact
/// integer.
///
/// The threads of a block run independently and wait for each other only where the block synchronises. Other
/// threads see their stores late and in any order, except where a release orders them. Plain loads may return
/// old values, unless an acquire has made the new ones visible. Packets arrive one by one. Proxies read
/// sources and write destinations at any time. Ranks run at any speed, and a rank may enter the next launch
/// while others are still in this one. The application overwrites the input, and reads and overwrites the
/// output, as soon as its rank's launch has ended. The machine is stricter than the model in one point: it
/// does not delay a load past later stores of its thread.
class Adversary {
 public:
  /// Makes a machine for a plan, of which it keeps a copy. It throws nothing if the plan cannot be bound.
  /// Every run() then returns `refused`.
  explicit Adversary(const Plan&, const AdversaryOptions& = {});
  ~Adversary();
  Adversary(Adversary&&) noexcept;
  Adversary& operator=(Adversary&&) noexcept;

  /// Runs one schedule, which `seed` determines. The same seed gives the same verdict on every machine.
  Verdict run(uint64_t seed);

  /// Runs up to `schedules` schedules with the seeds `first`, `first` + 1, ..., and stops at the first that
  /// is not ok. The verdict's `steps` is the sum over all schedules.
  Verdict run_all(uint64_t first, uint64_t schedules);

  /// Returns the bytes of the message.
  uint64_t bytes() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace chorale
