#pragma once
/// \file
/// A History records an execution as a graph: the events, and what had to happen before each of them. The
/// order is that of order.hpp, but it is stored as causes instead of clocks. So a message can say why two
/// events are ordered or not.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "chorale/finding.hpp"
#include "compiler/proof/execution/symbolic_executor.hpp"

namespace chorale::proof {

/// Returns how many launches an execution must have to show all events of a race or of a wrong value.
uint32_t launches_of(const Finding&);

/// Says why one node comes after another.
struct Cause {
  enum class Kind : uint8_t {
    publishes,  ///< the other node and all before it have ended, and their writes are visible
    over,       ///< the other node and all before it have ended, but their writes need not be visible
    alone,      ///< only the other node has ended and is visible; nothing is known of those before it
  };
  uint32_t node = 0;
  Kind kind = Kind::publishes;
};

/// Describes a step of an operation, or the beginning or end of a rank's launch. A synchronisation is left
/// out if there is nothing to wait for and the operation has another step.
struct Node {
  enum class Kind : uint8_t { begin, end, sync, control, move, proxy_reads, proxy_writes };
  Kind kind = Kind::control;
  bool packets = false;  ///< a move that writes packets
  uint32_t chain = 0;    ///< for begin and end: the rank
  uint32_t op = 0;       ///< position in the chain
  uint32_t launch = 0;
  uint32_t segment = 0;                      ///< see ProofEvent
  std::optional<uint32_t> id;                ///< of a post, a take or a drain: see ProofEvent
  uint64_t turn = 0;                         ///< the atom at which the turn of its pipeline begins
  uint32_t first_cause = 0, first_read = 0;  ///< see History::before() and History::sources()
};

/// Observes an execution. Nodes are in the order in which they happened, so causes come before their effects.
class History : public Observer {
 public:
  /// Limits the number of nodes. A longer history is cut off: see complete().
  static constexpr size_t most = size_t(1) << 21;

  explicit History(const SymbolicExecutor&);

  void begin(uint32_t rank, uint32_t launch) override;
  void end(uint32_t rank, uint32_t launch) override;
  void sync(uint32_t chain) override;
  void move(uint32_t chain, const SymbolicStep&, std::span<const Touch>) override;
  void post(uint32_t chain, const SymbolicStep&, uint32_t counter) override;
  void take(uint32_t chain, const SymbolicStep&, uint32_t counter, uint64_t first, uint64_t n) override;
  void drain(uint32_t chain, const SymbolicStep&) override;
  void arrive(uint32_t chain, uint32_t barrier) override;
  void leave(uint32_t chain, uint32_t barrier) override;

  const SymbolicExecutor& executor() const { return executor_; }
  bool complete() const { return nodes_.size() < most; }
  const std::vector<Node>& nodes() const { return nodes_; }
  /// Returns what had to happen before a node.
  std::span<const Cause> before(uint32_t node) const { return part(causes_, node, &Node::first_cause); }
  /// Returns, for a move, the writers of what it read.
  std::span<const uint32_t> sources(uint32_t node) const { return part(reads_, node, &Node::first_read); }
  /// Returns the operation of a node; beginnings and ends of launches have none.
  OpPlace place(const Node& node) const {
    const Chain& chain = executor_.chains()[node.chain];
    return {chain.rank, chain.block, node.op};
  }

  /// Returns the last writer of a cell, or none.
  uint32_t writer(uint32_t cell) const { return writer_[cell]; }
  std::vector<uint32_t> posts(uint32_t counter) const;

  /// Returns the node of an event of a finding, or none if it never happened.
  uint32_t find(const ProofEvent&) const;
  static constexpr uint32_t none = ~uint32_t{0};
  static constexpr uint32_t any = ~uint32_t{0};  ///< matches every segment, as ProofEvent::segment

 private:
  struct Token {
    uint32_t node, start;
    bool relaxed;
  };
  struct Track {
    uint32_t spine = none;  ///< the node that all later nodes of the block come after
    uint32_t segment = 0;
    std::vector<uint32_t> moves;  ///< since the last synchronisation
  };
  struct Proxy {
    uint32_t segment = 0;
    uint32_t reads = none, writes = none;
    std::vector<uint32_t> unread;  ///< reads that no operation has waited for yet
  };

  template <class Item>
  std::span<const Item> part(const std::vector<Item>& all, uint32_t node, uint32_t Node::*first) const {
    const size_t end = node == last() ? all.size() : nodes_[node + 1].*first;
    return std::span(all).subspan(nodes_[node].*first, end - nodes_[node].*first);
  }

  // Only the newest node gets causes and sources.
  Node& add(Node::Kind);
  Node& add(uint32_t chain, Node::Kind);
  Node& add_to_spine(uint32_t chain, Node::Kind);
  uint32_t last() const { return uint32_t(nodes_.size() - 1); }
  void behind(uint32_t other, Cause::Kind kind = Cause::Kind::publishes) {
    if (other != none) causes_.push_back({other, kind});
  }
  void read_cells(std::span<const Touch>, bool packets_too);
  void write_cells(std::span<const Touch>);

  const SymbolicExecutor& executor_;
  std::vector<Node> nodes_;
  std::vector<Cause> causes_;                                      // of all nodes, one after the other
  std::vector<uint32_t> reads_;                                    // the same for sources
  std::vector<Track> tracks_;                                      // by chain
  std::map<std::pair<uint32_t, uint32_t>, Proxy> proxies_;         // by chain and channel
  std::vector<uint32_t> begun_, ended_;                            // by rank: node of the last launch
  std::vector<std::vector<Token>> tokens_;                         // by counter
  std::vector<std::vector<std::map<uint32_t, uint32_t>>> rounds_;  // by barrier and round: arrivals, by chain
  std::vector<size_t> round_of_;                                   // by chain
  std::vector<uint32_t> writer_;                                   // by cell
};

}  // namespace chorale::proof
