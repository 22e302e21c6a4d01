#pragma once
/// \file
/// An Execution runs an unrolled schedule once and finds the order that the schedule guarantees. Flags and
/// transfers have fixed ends, so the order in which ranks proceed changes nothing. One execution stands for
/// all.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "chorale/schedule/concrete.hpp"

namespace chorale::schedule {

/// Names step `step` of a rank, in run `run`.
struct Event {
  uint32_t rank = 0, step = 0, run = 0;
  bool operator==(const Event&) const = default;
};

enum class Queues : uint8_t {
  by_stream,  ///< each stream proceeds independently
  one_each,   ///< all streams of a rank are one queue in the order of enqueueing, as CUDA may map streams
};

/// Returns whether all ranks must reach this step, one such step after the other. Groups of transfers via
/// `plan` are launches, too.
bool is_launch(const Step&);

class Execution {
 public:
  /// Treats groups as a rendezvous if the schedule has any. If it has none, flags determine the order.
  Execution(const Concrete&, Queues, uint32_t runs);

  /// Returns the steps that have begun and never end. It is empty if all steps ended.
  const std::vector<Event>& blocked() const { return blocked_; }
  /// Returns whether `first` has ended when `second` begins, in every execution.
  bool before(const Event& first, const Event& second) const;
  /// Returns how many steps had ended before this one ended, in an execution in which nothing is blocked. A
  /// step that comes before this one has a smaller number.
  uint32_t number(const Event&) const;

 private:
  /// Says how many steps of each queue have ended.
  using Clock = std::span<uint32_t>;
  static constexpr size_t none = ~size_t{0};

  struct State {
    bool begun = false, over = false;
    uint32_t number = 0;    ///< how many steps had ended before it ended
    uint32_t in_queue = 0;  ///< its number in its queue, from 1
    size_t waits_end = 0;  ///< where the steps that it waits for end in OfRank::waits; they begin where those
                           ///< of the step before it end
    size_t turn = none;    ///< another launch that must have ended, although it may leave work unfinished
  };
  /// Holds the steps of a rank, by their position in all runs.
  struct OfRank {
    std::vector<State> states;
    std::vector<size_t> waits;                    // the positions of the steps to wait for
    std::vector<uint32_t> begins, ends;           // the clocks of when a step begins and ends
    std::array<std::vector<size_t>, 2> together;  // the positions of barriers, and of launches
  };
  const Step& step(uint32_t rank, size_t position) const {
    return made_.steps[rank][position % made_.steps[rank].size()];
  }
  uint32_t queue(uint32_t rank, uint32_t stream) const {
    return uint32_t(rank * streams_ + (queues_ == Queues::one_each ? 0 : stream));
  }
  size_t position(const Event& of) const { return of.step + of.run * made_.steps[of.rank].size(); }
  Clock begins(uint32_t rank, size_t position) {
    return Clock(ranks_[rank].begins).subspan(position * clock_.size(), clock_.size());
  }
  Clock ends(uint32_t rank, size_t position) {
    return Clock(ranks_[rank].ends).subspan(position * clock_.size(), clock_.size());
  }
  std::span<const size_t> waits(uint32_t rank, size_t position) const;
  void plan_order();
  bool try_begin(uint32_t rank, size_t position);
  bool try_end(uint32_t rank, size_t position);
  bool peers_have_begun(uint32_t rank, size_t position);
  bool all_have_begun(uint32_t rank, size_t position);
  void run();

  const Concrete& made_;
  Queues queues_;
  uint32_t runs_;
  uint32_t over_ = 0;  // number of steps that have ended
  size_t streams_;
  std::vector<OfRank> ranks_;
  /// Holds, by flag, what is known to each post that is not taken yet. [replay] checks that there is never
  /// more than one such post.
  std::vector<std::deque<std::vector<uint32_t>>> posts_;
  std::vector<uint32_t> clock_;  // of the step being tried
  std::vector<Event> blocked_;
};

}  // namespace chorale::schedule
