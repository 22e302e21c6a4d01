#pragma once
/// \file
/// Records one execution of a plan as a graph: which access comes before which, and by which operations.
/// compiler/proof/history.hpp has such a graph too, to explain findings. This one numbers accesses so that
/// those of two plans can be compared. It is independent of the proofs, because mutants test the proofs.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/proof/player.hpp"

namespace chorale::mutation {

/// An access of a block, its proxy, or the application of a rank. It is the same in two plans whose blocks
/// touch the same memory in the same order.
struct AccessId {
  enum class Who : uint8_t { block, proxy_reads, proxy_writes, application };
  Who who = Who::block;
  uint32_t rank = 0, block = 0, launch = 0;
  uint32_t nth = 0;  ///< index of the block's memory operation; application: 0 reads, 1 overwrites
  auto operator<=>(const AccessId&) const = default;
};

/// Two accesses of the same bytes, at least one of which writes. The first came before the second.
struct Pair {
  AccessId first, second;
  bool visible = true;  ///< the first is a write: the second has to see it, not only come later
  auto operator<=>(const Pair&) const = default;
};

class Trace : private proof::Observer {
 public:
  explicit Trace(const Plan&);

  /// Returns true if all launches ended.
  bool ended() const { return ended_; }

  /// Returns, for each block, a text of its operations and the memory that they touch, to compare two
  /// executions.
  const std::vector<std::string>& streams() const { return streams_; }

  /// Returns the pairs of accesses that need an order, each once.
  const std::set<Pair>& pairs() const { return pairs_; }

  /// Returns the pairs that have an operation between them in the order, or as one of the two; the nearest
  /// first.
  std::vector<Pair> pairs_through(const OpPlace& at) const;

  /// Returns the place of an access.
  OpPlace place_of(const AccessId& id) const { return accesses_.at(id).at; }

  /// Returns the operations that order the second access after the first; none if there is no such path.
  std::optional<std::vector<OpPlace>> path(const Pair&) const;

 private:
  struct Edge {
    uint32_t from;
    bool visible;
  };
  struct Node {
    OpPlace at;
    bool is_op = false;
    std::vector<Edge> from;
  };
  struct Access {
    OpPlace at;
    uint32_t begin = 0;      ///< the node after which it begins
    uint32_t done = nobody;  ///< the node at which it has ended
    /// The node at which its packets say, position by position, that it has ended there.
    uint32_t told = nobody;
  };
  struct Cell {
    std::optional<AccessId> write;
    std::vector<AccessId> readers;
    uint32_t teller = nobody;  ///< for packets: the node after which its writer was
  };
  static constexpr uint32_t nobody = ~uint32_t{0};

  void begin(uint32_t rank, uint32_t launch) override;
  void end(uint32_t rank, uint32_t launch) override;
  void sync(uint32_t chain) override;
  void move(uint32_t chain, const proof::Step&, std::span<const proof::Touch>) override;
  void post(uint32_t chain, const proof::Step&, uint32_t counter) override;
  void take(uint32_t chain, const proof::Step&, uint32_t counter, uint64_t first, uint64_t n) override;
  void drain(uint32_t chain, const proof::Step&) override;
  void arrive(uint32_t chain, uint32_t meeting) override;
  void leave(uint32_t chain, uint32_t meeting) override;

  uint32_t add_node(std::vector<Edge> from);
  uint32_t add_node(uint32_t chain, std::vector<Edge> from);
  void go_on(uint32_t chain, std::vector<Edge> more = {});
  void own(uint32_t rank, uint32_t launch, BufferKind, bool writes);
  void read(uint32_t cell, const AccessId&);
  void write(uint32_t cell, const AccessId&);
  void note(const std::optional<AccessId>& first, const AccessId& second, bool visible);
  void tell(uint32_t chain, const proof::Step&, std::span<const proof::Touch>);
  std::vector<uint32_t> distances(const std::vector<uint32_t>& from, bool forward) const;

  std::unique_ptr<proof::Memory> memory_;
  std::unique_ptr<proof::Player> player_;
  bool ended_ = false;
  std::vector<Node> nodes_;
  std::vector<uint32_t> now_, applications_;  // by chain, by rank: the last node
  std::vector<std::vector<AccessId>> open_;   // by chain: accesses since the last synchronisation
  std::vector<std::vector<Edge>> heard_;      // by chain: from packets since then
  std::vector<uint32_t> counts_;              // by chain: accesses of the launch
  std::map<std::pair<uint32_t, uint32_t>, std::pair<uint32_t, uint32_t>> proxies_;  // reads, writes done
  struct Post {
    uint32_t node, start;  // of the launch
    bool publishes;
  };
  std::vector<std::vector<Post>> posts_;       // by counter
  std::vector<uint32_t> starts_;               // by rank
  std::vector<std::vector<uint32_t>> rounds_;  // by meeting
  std::vector<uint32_t> round_of_;             // by chain
  std::map<AccessId, Access> accesses_;
  std::vector<Cell> cells_;
  std::set<Pair> pairs_;
  std::vector<std::string> streams_;
};

}  // namespace chorale::mutation
