#pragma once
/// \file
/// An Order computes which accesses are ordered in every execution of a plan. It uses the weakest order. Two
/// operations of a block are ordered only if the threads synchronise between them. A transfer that was handed
/// to a proxy runs independently until something shows that it has ended.
///
/// There are two orders. *Visible* means that the later access sees what the earlier one wrote. *Over* means
/// that the earlier access has ended, so what it read may be overwritten. Signals, barriers, semaphores and
/// the ends of launches establish both. Relaxed signals and packets establish only the second one, and show
/// whatever was visible at the beginning of the poster's launch. Draining a channel shows that the proxy has
/// read, but not that its writes have arrived.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "compiler/proof/execution/symbolic_executor.hpp"

namespace chorale::proof {

/// Describes something that accesses memory. It is the threads of a block, the block's transfers on a port
/// channel (one agent for their reads and one for their writes), or the application that owns a rank's
/// buffers.
struct Agent {
  enum class Kind : uint8_t { block, proxy_reads, proxy_writes, application };
  Kind kind = Kind::block;
  uint32_t chain = 0;    ///< the block's chain
  uint32_t rank = 0;     ///< the application's rank
  uint32_t segment = 0;  ///< the current one; a synchronisation ends it
  /// An operation that releases has published all segments before `released`, for all threads of the block.
  /// From the next synchronisation on, `releasing` replaces it: one thread releases, and the others may be
  /// ahead of it.
  uint32_t released = 0, releasing = 0;
  Clock visible, over;
  /// Hold the part of `visible` that every rank, not only this one, sees at any address. They are used if
  /// there are switch operands.
  Clock reached, reaching;
  Clock pending;                   ///< from packets: all threads know it from the next synchronisation on
  std::vector<uint32_t> launches;  ///< by launch: the segment in which it began

  /// Returns the launch that a segment belongs to.
  uint32_t launch_of(uint32_t segment) const;
};

/// Computes the orders of an execution. An agent is a position in agents().
class Order : public Observer {
 public:
  explicit Order(const SymbolicExecutor&);

  void begin(uint32_t rank, uint32_t launch) override;
  void end(uint32_t rank, uint32_t launch) override;
  void sync(uint32_t chain) override;
  void post(uint32_t chain, const SymbolicStep&, uint32_t counter) override;
  void take(uint32_t chain, const SymbolicStep&, uint32_t counter, uint64_t first, uint64_t n) override;
  void drain(uint32_t chain, const SymbolicStep&) override;
  void arrive(uint32_t chain, uint32_t barrier) override;
  void leave(uint32_t chain, uint32_t barrier) override;

 protected:
  const SymbolicExecutor& executor_;

  const std::vector<Agent>& agents() const { return agents_; }
  Agent& block(uint32_t chain) { return agents_[blocks_[chain]]; }
  uint32_t block_id(uint32_t chain) const { return blocks_[chain]; }
  /// Returns the two agents of a push: the one that reads, then the one that writes. Both get everything that
  /// the block knows now.
  std::pair<uint32_t, uint32_t> hand_over(uint32_t chain, const SymbolicStep& push);
  /// Marks a push as ended. Later pushes on the channel come after it.
  void complete(uint32_t reads, uint32_t writes);
  Agent& agent(uint32_t id) { return agents_[id]; }
  uint32_t application(uint32_t rank) const { return applications_ + rank; }
  /// Returns what a block tells by a packet: everything that it knows to have ended, and its own earlier
  /// segments.
  Clock told_by_packet(uint32_t agent);

 private:
  struct Token {
    Clock visible, over;
    Clock start;    ///< what was visible when the launch began; only if there are relaxed waits
    Clock reached;  ///< for a release or a barrier: see Agent; only if there are switch operands
  };
  /// Holds the posts of a counter from `first` on. If a single chain takes them, earlier posts are dropped.
  struct Tokens {
    uint64_t first = 0;
    std::vector<Token> list;
    size_t taken = 0;  ///< entries of `list` that were taken
  };

  static uint32_t count(const Plan&);
  void add_agents();
  void publish(Agent&, uint32_t id);
  Clock start_of(uint32_t rank) const { return executor_.any_relaxed_waits() ? starts_[rank] : Clock(); }
  static void join(Agent&, const Clock& visible, const Clock& over);

  bool overtaken(uint32_t chain, const SymbolicStep& post);

  std::unique_ptr<Clock::Room> room_;
  const bool any_switched_, any_relaxed_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, bool> overtaken_;  // by chain, operation and counter
  std::vector<Agent> agents_;
  std::vector<uint32_t> blocks_;  // by chain
  // Holds, by chain and channel, the agent of the proxy's reads. The next agent is that of its writes.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> proxies_;
  uint32_t applications_ = 0;
  std::vector<Clock> starts_;               // by rank
  std::vector<Tokens> tokens_;              // by counter
  std::vector<std::vector<Token>> rounds_;  // by barrier and round: what each leaving chain knows
  std::vector<uint64_t> round_of_;          // by chain
};

}  // namespace chorale::proof
