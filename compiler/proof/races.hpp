#pragma once
/// \file
/// Accesses that nothing orders, within a launch and between launches.

#include <set>
#include <tuple>

#include "findings.hpp"
#include "order.hpp"
#include "shares.hpp"

namespace chorale::proof {

/// Watches an execution and tells of every access that is not ordered with an earlier one of the same cell.
class Races : public Order {
 public:
  /// \param facts  whether entry_guarded() and exit_quiescent() are wanted
  Races(const Player&, const Shares&, Findings&, bool facts);

  void begin(uint32_t rank, uint32_t launch) override;
  void end(uint32_t rank, uint32_t launch) override;
  void move(uint32_t chain, const Step&, std::span<const Touch>) override;

  bool entry_guarded() const { return entry_guarded_; }
  bool exit_quiescent() const { return exit_quiescent_; }

 private:
  static constexpr uint32_t nobody = ~uint32_t{0};

  /// An access that was.
  struct Epoch {
    uint32_t agent = nobody, segment = 0;
    uint32_t op = 0;
    uint32_t move : 31 = 0;  ///< which of all that are done: pairs and turns of an operation are told apart
    uint32_t switched : 1 = 0;
    /// Of Shares: of the cell, no more than a slice is touched; set 0: all of it.
    uint32_t set = 0, member = 0;
  };

  /// An operation that wrote packets: what it had read, by operand and position. Its packets tell whoever
  /// reads one that this much has been read at its position, and what the packets it was made of told.
  struct Sent {
    struct Source {
      uint32_t cell;  ///< the first
      /// Packets: by position, the operation that wrote them, and its position.
      std::vector<std::pair<uint32_t, uint32_t>> sent;
    };
    Epoch epoch;
    std::vector<Source> sources;
  };

  struct Cell {
    Epoch write;
    uint32_t readers = nobody;  ///< in pool_
    uint32_t writers = nobody;  ///< in pool_: before `write`, where that wrote a slice; of packets, after it
  };

  struct PacketCell {
    uint32_t told = 0;       ///< in told_
    uint32_t sent = nobody;  ///< in sent_, at `position` of its operands
    uint32_t position = 0;
    bool again = false;  ///< written for the second time in a launch
  };

  struct Reader {
    Epoch epoch;
    uint32_t next;
  };

  void number_move(uint32_t chain, std::span<const Touch>);
  void inside(uint32_t id, std::span<const Touch>);
  bool forwards_to_itself(const Touch& dest) const;
  void note_forwarded(uint32_t id, const Touch&);
  void note_sent(uint32_t id);
  bool told(uint32_t cell, const Epoch& reader) const;
  bool told_by(uint32_t sent, uint32_t position, uint32_t cell, const Epoch& reader, int depth) const;
  bool may_be_empty(const Chain&) const;
  bool hear();
  void tell(uint32_t id);
  void touch_all(uint32_t id, const Touch&, bool by_proxy);
  void note_visit(uint32_t id, const Access&, uint32_t host);
  void own(uint32_t rank, BufferKind, bool write_it, bool overwritten = false);
  PacketCell& packet(uint32_t cell) { return packets_[cell]; }

  bool visible(uint32_t id, const Epoch& to);
  bool over(uint32_t id, const Epoch& to);
  bool same(uint32_t id, const Epoch& to);
  Epoch here(uint32_t id) { return {id, agent(id).segment, op_, move_, what_->switched, set_, member_}; }

  void read(uint32_t id, uint32_t at);
  void write(uint32_t id, uint32_t at);
  bool arrived(const Cell&) const;
  bool ended(const Epoch&);
  void read_packets(uint32_t id, uint32_t at, bool by_proxy);
  void write_packets(uint32_t id, uint32_t at);
  static bool apart(const Epoch&, const Epoch&);
  void check(uint32_t id, uint32_t at, const Epoch& before, bool writes);
  void check_writers(uint32_t id, uint32_t at);
  void check_readers(uint32_t id, uint32_t at);
  void push(uint32_t& list, const Epoch&);
  void drop(uint32_t& slot);
  void add_reader(Cell&, const Epoch&);

  // -- What is said: races_text.cpp

  std::string name() const;
  std::string name(uint32_t cell) const;
  OpPlace place(const Epoch&);
  ProofEvent event(const Epoch&, bool writes);
  uint32_t launch_of(const Epoch& epoch) { return agent(epoch.agent).launch_of(epoch.segment); }
  bool plain(const Epoch& epoch) { return agent(epoch.agent).kind != Agent::Kind::application; }
  void overlap_inside(const Epoch&);
  bool elsewhere(const Epoch& first) const;
  void conflict(uint32_t id, uint32_t cell, const Epoch& first, bool writes, bool written);
  void with_owner(const Epoch& second, const Epoch& first, uint32_t cell, bool writes, bool written);
  void between(const Epoch& second, const Epoch& first, bool writes, bool written);
  void say(ProofName, const Epoch& second, const Epoch& first, bool writes, bool written,
           const std::string& text, std::optional<Note> note);

  const Shares& shares_;
  Findings& findings_;
  const bool facts_;
  bool entry_guarded_ = true, exit_quiescent_ = true;
  std::vector<Cell> cells_;
  std::vector<PacketCell> packets_;  // by cell, if there are any
  std::vector<Reader> pool_;
  uint32_t free_ = nobody;
  std::vector<Clock> told_;
  std::vector<Sent> sent_;
  std::vector<std::map<uint32_t, uint32_t>> visits_;  // by rank and agent of others: after its last access
  std::vector<uint32_t> ended_;                       // by rank: launches
  std::vector<Epoch> used_;                           // by rank: the application overwrites its output
  std::span<const Touch> sources_;                    // of the move that is looked at
  uint32_t position_ = 0;                             // in each of its operands
  Clock base_;                                        // what the agent that acts knows to be over
  Clock over_;                                // and what the packets at the position tell the thread there
  bool hears_ = false;                        // whether it reads packets
  std::vector<uint32_t> heard_, heard_here_;  // in told_: what over_ has
  const Access* what_ = nullptr;
  uint32_t op_ = 0, launch_ = 0, move_ = 0, moves_ = 0;
  uint32_t set_ = 0, member_ = 0;  // of the touch that is looked at: see Epoch
  /// Pairs of one operation: the numbers of their moves, and their operands.
  struct Pair {
    uint32_t move;
    Range source, dest;
  };
  std::vector<Pair> pairs_;
  std::tuple<uint32_t, uint32_t, uint32_t, uint64_t> pairs_of_;  // chain, op, launch and turn
};

}  // namespace chorale::proof
