#pragma once
/// \file
/// A Trial changes a copy of a plan and executes it, to find out whether the change orders two accesses.

#include <cstdint>
#include <optional>
#include <vector>

#include "chorale/finding.hpp"
#include "chorale/plan.hpp"
#include "history.hpp"

namespace chorale::proof {

/// Returns whether two operations are in the same thread block.
inline bool same_block(const OpPlace& one, const OpPlace& other) {
  return one.rank == other.rank && one.threadblock == other.threadblock;
}

/// Holds a changed copy of the plan, with the two accesses in it.
class Trial {
 public:
  /// \param history  an execution of the plan; it must outlive the trial
  /// \param finding  a race with two events
  Trial(const History& history, const Finding& finding);

  Plan& plan() { return plan_; }
  Op& op(const OpPlace& at) { return block_of(at).ops[at.op]; }
  const OpPlace& first() const { return events_[0].at; }
  const OpPlace& second() const { return events_[1].at; }

  void insert(const OpPlace& before, Opcode code, const std::vector<uint32_t>& ids = {},
              ChannelType via = ChannelType::none);
  /// Inserts a signal from a place of one rank to a place of another, over a new channel.
  void insert_signal(const OpPlace& from, const OpPlace& to);
  /// Inserts a semaphore that one thread block releases and another one of the rank acquires.
  void insert_semaphore(const OpPlace& from, const OpPlace& to);
  /// Inserts a barrier of two thread blocks of a rank.
  void insert_barrier(const OpPlace& one, const OpPlace& other);
  /// Moves a wait before an operation of another thread block of the rank.
  void move_wait(const OpPlace& from, const OpPlace& to);
  /// Moves an operation up in its thread block, so that it comes before operation `to`.
  void move_up(const OpPlace& from, uint32_t to);
  /// Moves an operation down in its thread block, so that it comes right after operation `to`.
  void move_down(const OpPlace& from, uint32_t to);

  /// Returns whether the changed plan ends the launches of the two accesses, and orders these.
  /// \param reversed  true: the second access must come before the first one
  bool orders(bool reversed) const;

  /// Returns the number of wrong cells of outputs after the first launch of one execution. Returns nothing if
  /// it does not end, or if the two accesses do not come in the expected order.
  /// \param reversed  true: the second access is expected before the first one
  std::optional<uint64_t> wrong_outputs(bool reversed) const;

 private:
  ThreadBlock& block_of(const OpPlace& at) { return plan_.gpus[at.rank].threadblocks[at.threadblock]; }
  /// Moves the events in a block from an operation on, up to operation `end`, one place back.
  void move_back(OpPlace from, uint32_t end = ~uint32_t{0});
  /// Adds a new memory channel between two ranks.
  void add_channel(uint32_t from, uint32_t to);
  /// Returns the position of its rank's newest memory channel in the lists of a block.
  uint32_t newest_channel(const OpPlace& at);
  /// Adds a channel of the rank to the lists of a block, and returns its position there.
  uint32_t local_channel(const OpPlace& at, ChannelType type, uint32_t channel);
  static uint32_t channel_of(const ThreadBlock& block, ChannelType type, uint32_t position);

  Plan plan_;
  const Memory& memory_;  ///< of the plan; no change has other operands
  const uint32_t launches_;
  const ProofSetting& setting_;
  std::vector<ProofEvent> events_;
};

}  // namespace chorale::proof
