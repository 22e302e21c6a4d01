#pragma once
/// \file
/// The SymbolicExecutor runs one execution of a plan without data. Each block does
/// its operations in order, as far as it can. The blocks of a plan wait only for each other, so if this
/// execution ends, all executions end. This is not true when blocks compete. Then a competing block takes
/// only when no other block can proceed, and Choices says which of them goes first.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "compiler/plan/channel_ends.hpp"
#include "memory.hpp"

namespace chorale::proof {

/// Decides which of several blocks takes next from a semaphore or a channel, and enumerates all
/// possibilities.
class Choices {
 public:
  Choices() = default;
  /// Begins with the choices of an earlier execution.
  explicit Choices(std::vector<uint32_t> made) : wanted_(std::move(made)) {}
  /// Returns the next choice in this execution, from 0 to options - 1.
  uint32_t choose(uint32_t options);
  /// Moves to the next execution. Returns false after the last one.
  bool next();
  /// Moves to a random execution. A seed gives the same one on every machine.
  void draw(uint32_t seed);
  /// Returns the choices of this execution, up to the last one that was requested. All later ones would be 0.
  std::vector<uint32_t> made() const;

 private:
  struct Choice {
    uint32_t chosen, options;
  };
  std::vector<uint32_t> wanted_;
  std::vector<Choice> made_;
  size_t at_ = 0;
};

/// Describes a channel's signal, which is posted and awaited, or a semaphore, which is released and acquired.
struct Counter {
  uint64_t initial = 0, posts = 0, takes = 0;
  std::vector<uint32_t> posters, takers;  ///< chains of the plan, each listed once
  std::vector<uint32_t> waiting;          ///< chains that wait for a post

  bool available() const { return initial + posts > takes; }
  /// Returns whether the speed of the blocks decides which post a take gets, or which block gets it.
  bool competes() const { return takers.size() > 1 || posters.size() > 1; }
};

struct Barrier {
  uint32_t rank = 0, id = 0, participants = 0;
  uint64_t arrived = 0;
  std::vector<uint32_t> members, waiting;
};

/// Describes a thread block during the execution.
struct Chain {
  enum class State : uint8_t { ready, counter, barrier, packets, ended };

  uint32_t rank = 0, block = 0;  ///< positions in Plan::gpus and Gpu::threadblocks
  State state = State::ready;
  uint32_t launch = 0;
  uint32_t op = 0;                  ///< the next operation, or the current one
  uint32_t step = 0;                ///< position within the operation
  uint32_t body = 0, body_end = 0;  ///< of the current pipeline; body_end 0: in no pipeline
  Turn turn;
  uint64_t turns_left = 0;
  bool listed = false;     ///< `steps` are those of `op`
  bool arrived = false;    ///< at the barrier of the step
  uint64_t goal = 0;       ///< it leaves that barrier after this many arrivals since the beginning
  uint32_t waits_for = 0;  ///< counter, barrier or cell, depending on `state`
  SymbolicSteps steps;

  OpPlace place() const { return {rank, block, op}; }
};

/// Holds the cells of one access of a move.
struct Touch {
  const Access* access;
  Range range;
  uint32_t cell, cells;
};

class SymbolicExecutor;

/// Receives the events of an execution, in their order. Chains are positions in SymbolicExecutor::chains().
class Observer {
 public:
  virtual ~Observer() = default;
  /// All blocks of a rank begin a launch.
  virtual void begin(uint32_t /*rank*/, uint32_t /*launch*/) {}
  /// All blocks of a rank have ended a launch.
  virtual void end(uint32_t /*rank*/, uint32_t /*launch*/) {}
  virtual void sync(uint32_t /*chain*/) {}
  /// A step moves data: it is a move or a push. Sources come first.
  virtual void move(uint32_t /*chain*/, const SymbolicStep&, std::span<const Touch>) {}
  /// A step posts to a counter: it is a post, a push or a release.
  virtual void post(uint32_t /*chain*/, const SymbolicStep&, uint32_t /*counter*/) {}
  /// A step takes from a counter. Posts [first, first + n) of the counter are then known to have
  /// been made.
  virtual void take(uint32_t /*chain*/, const SymbolicStep&, uint32_t /*counter*/, uint64_t /*first*/,
                    uint64_t /*n*/) {}
  virtual void drain(uint32_t /*chain*/, const SymbolicStep&) {}
  virtual void arrive(uint32_t /*chain*/, uint32_t /*barrier*/) {}
  virtual void leave(uint32_t /*chain*/, uint32_t /*barrier*/) {}
};

class SymbolicExecutor {
 public:
  SymbolicExecutor(const Plan&, const Memory&);

  /// Executes some launches symbolically. Returns true if all of them end. Otherwise each chain that did not
  /// end says what it waits for.
  bool run(uint32_t launches, Choices&, Observer&);

  const Plan& plan() const { return plan_; }
  const Memory& memory() const { return memory_; }
  const std::vector<Chain>& chains() const { return chains_; }
  const std::vector<Counter>& counters() const { return counters_; }
  const std::vector<Barrier>& barriers() const { return barriers_; }
  /// Returns whether the plan has operations of a kind.
  bool any_switched() const { return any_switched_; }
  bool any_relaxed_posts() const { return any_relaxed_posts_; }
  bool any_relaxed_waits() const { return any_relaxed_waits_; }
  bool any_proxies() const { return any_proxies_; }
  /// Returns the counter that a post, an await, a push, a release or an acquire of a rank uses. Returns none
  /// if no block waits there.
  uint32_t counter_of(uint32_t rank, const SymbolicStep&) const;
  uint32_t barrier_of(uint32_t rank, uint32_t id) const;
  uint32_t chain_of(uint32_t rank, uint32_t block) const { return first_chain_[rank] + block; }
  static constexpr uint32_t none = ~uint32_t{0};

 private:
  void find_counters();
  void note_kind(const Op&);
  void go_on(uint32_t chain);
  void advance(uint32_t chain);
  bool do_step(uint32_t chain, const SymbolicStep&);
  bool take(uint32_t chain, const SymbolicStep&);
  bool arrive(uint32_t chain, const SymbolicStep&);
  bool move(uint32_t chain, const SymbolicStep&);
  void post(uint32_t chain, const SymbolicStep&);
  void wake(std::vector<uint32_t>& waiting);
  bool settle(Choices&);
  void park(uint32_t chain, Chain::State, uint32_t on, std::vector<uint32_t>& waiting);
  void begin_launch(uint32_t rank);

  const Plan& plan_;
  const Memory& memory_;
  Observer* observer_ = nullptr;
  uint32_t launches_ = 1;
  uint64_t to_do_ = 0, done_ = 0;  ///< operations of all launches, each turn of a pipeline counted
  std::vector<Chain> chains_;
  std::vector<uint32_t> first_chain_, left_;                                         // by rank
  std::vector<ChannelEnds> ends_;                                                    // by rank
  std::vector<uint32_t> first_await_[std::size(signalled_types)], first_semaphore_;  // by rank: counters
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> barrier_at_;
  std::vector<Counter> counters_;
  std::vector<Barrier> barriers_;
  bool any_switched_ = false, any_relaxed_posts_ = false, any_relaxed_waits_ = false, any_proxies_ = false;
  uint64_t operations_ = 0;  // of a launch, each turn of a pipeline counted
  std::deque<uint32_t> ready_;
  std::vector<uint32_t> written_;  // by cell of packets: 1 + the launch whose packets it holds
  std::unordered_map<uint32_t, std::vector<uint32_t>> readers_;  // by cell of packets: chains that wait
  std::vector<Touch> touches_;
  uint32_t favoured_ = none;  // the chain chosen to take when several compete
};

}  // namespace chorale::proof
