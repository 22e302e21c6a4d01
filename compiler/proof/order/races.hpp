#pragma once
/// \file
/// Races finds accesses that nothing orders, within a launch and between launches.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/proof/execution/findings.hpp"
#include "order.hpp"
#include "shares.hpp"

namespace chorale::proof {

/// Observes an execution and reports every access that is not ordered with an earlier access to the same
/// cell.
class Races : public Order {
 public:
  /// \param facts  whether the caller wants entry_guarded() and exit_quiescent()
  Races(const SymbolicExecutor&, const Shares&, Findings&, bool facts);

  void begin(uint32_t rank, uint32_t launch) override;
  void end(uint32_t rank, uint32_t launch) override;
  void sync(uint32_t chain) override;
  void move(uint32_t chain, const SymbolicStep&, std::span<const Touch>) override;

  bool entry_guarded() const { return entry_guarded_; }
  bool exit_quiescent() const { return exit_quiescent_; }

 private:
  static constexpr uint32_t nobody = ~uint32_t{0};

  /// Holds what later accesses need to know of an access.
  struct Epoch {
    uint32_t agent = nobody, segment = 0;
    uint32_t op = 0;
    uint32_t move : 31 = 0;  ///< its number among all moves, see number_move()
    uint32_t switched : 1 = 0;
    /// Identify a loose slice, by Shares::loose() and the block's position in its group. The access does not
    /// touch the rest of the cell. If both are 0, it touches the whole cell.
    uint32_t set = 0, member = 0;
  };
  /// Describes an operation that wrote packets, and what it had read for them. A block that reads such a
  /// packet knows that the sources have been read at the packet's position, and everything that source
  /// packets told of theirs.
  struct Sent {
    struct Source {
      uint32_t cell;  ///< the first cell of the operand
      /// Holds, for packets and by position in the operand, the operation that wrote them (in sent_), and the
      /// position among those that it wrote.
      std::vector<std::pair<uint32_t, uint32_t>> sent;
    };
    Epoch epoch;
    std::vector<Source> sources;
  };
  /// Holds the accesses to a cell. Its lists are in pool_ and end with `nobody`.
  struct Cell {
    Epoch write;                ///< the last one
    uint32_t readers = nobody;  ///< since the last write
    /// Lists other writes that a later access must come after. In plain memory, these are the writes before
    /// `write` if `write` covered only a slice. Among packets, they are later writes that forward the content
    /// of the slot, see note_forwarded().
    uint32_t writers = nobody;
  };
  struct PacketCell {
    uint32_t told = 0;       ///< what its packets tell, in told_
    uint32_t sent = nobody;  ///< the operation that wrote them, in sent_
    uint32_t position = 0;   ///< in that operation's operands
    bool again = false;      ///< written a second time in a launch
  };
  struct Reader {
    Epoch epoch;
    uint32_t next;
  };
  /// Names positions [begin, end) of what an operation sent (in sent_), as a block has read them.
  struct Received {
    uint32_t sent, begin, end;
  };

  // These are called before the accesses of a move.
  void number_move(uint32_t chain, std::span<const Touch>);
  void check_own_operands(uint32_t id, std::span<const Touch>);

  // These track what packets tell. `id` is the agent that reads or writes them.
  bool forwards_to_itself(const Touch& dest) const;
  void note_forwarded(uint32_t id, const Touch&);
  void note_sent(uint32_t id);
  bool is_whole(const Chain&) const;
  void note_received(uint32_t id, const PacketCell&);
  bool knows_of_read(uint32_t id, uint32_t cell, const Epoch& reader) const;
  bool told_of_read(uint32_t cell, const Epoch& reader) const;
  bool told_of_read_by(uint32_t sent, uint32_t position, uint32_t cell, const Epoch& reader, int depth) const;
  bool may_be_empty(const Chain&) const;
  bool learn_from_packets();
  void tell_by_packets(uint32_t id);

  // These check the accesses. `id` is the agent, `at` the cell.
  void touch_all(uint32_t id, const Touch&, bool by_proxy);
  void touch_by_application(uint32_t rank, BufferKind, bool write_it, bool overwritten = false);
  void note_visit(uint32_t id, const Access&, uint32_t host);
  void read(uint32_t id, uint32_t at);
  void write(uint32_t id, uint32_t at);
  void read_packets(uint32_t id, uint32_t at, bool by_proxy);
  void write_packets(uint32_t id, uint32_t at);

  // These return whether an earlier access is ordered before what agent `id` does now.
  bool visible(uint32_t id, const Epoch& before);  ///< its write is also visible
  bool over(uint32_t id, const Epoch& before);     ///< it has ended, and no more is known
  bool same_move(uint32_t id, const Epoch& before);
  static bool disjoint_slices(const Epoch&, const Epoch&);
  bool arrived(const Cell&) const;  ///< another agent has read the packets
  bool ended(const Epoch& before);

  // These find conflicts with earlier accesses of a cell. They forget an earlier access when the new one
  // replaces it.
  void check(uint32_t id, uint32_t at, const Epoch& before, bool writes);
  void check_writers(uint32_t id, uint32_t at);
  void check_readers(uint32_t id, uint32_t at);

  Epoch here(uint32_t id) { return {id, agent(id).segment, op_, move_, what_->switched, set_, member_}; }
  PacketCell& packet(uint32_t cell) { return packets_[cell]; }
  void push(uint32_t& list, const Epoch&);
  void drop(uint32_t& slot);
  void add_reader(Cell&, const Epoch&);

  // These write the texts of findings, see races_text.cpp. `first` is the earlier access, which wrote if
  // `written` and read otherwise. `second` is the access being checked.
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
  void between(const Epoch& second, const Epoch& first, uint32_t cell, bool writes, bool written);
  bool was_unwritten(uint32_t cell, const Epoch& reader, const Epoch& writer);
  void missed(const Epoch& read, const Epoch& write, uint32_t cell);
  /// Reduces the chunks of a finding's accesses to those that the operations of both access, around a cell.
  void keep_common(Finding&, uint32_t cell) const;
  /// Returns null if there is such a finding already.
  Finding* say(ProofName, uint32_t cell, const Epoch& second, const Epoch& first, bool writes, bool written,
               const std::string& text, std::optional<Note> note, std::string help = {});

  const Shares& shares_;
  Findings& findings_;
  const bool facts_;
  bool entry_guarded_ = true, exit_quiescent_ = true;

  // These members hold what earlier accesses have left.
  std::vector<Cell> cells_;
  std::vector<PacketCell> packets_;  // by cell; empty if the plan has no packets
  std::vector<Reader> pool_;
  uint32_t free_ = nobody;   // the first free entry of pool_
  std::vector<Clock> told_;  // what writers of packets knew to have ended when they wrote
  std::vector<Sent> sent_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> sent_by_;  // in sent_, by move; of whole operations
  std::vector<std::vector<Received>> received_;                  // by agent: since its last synchronisation
  std::vector<std::unordered_map<uint32_t, std::vector<Received>>> knows_;  // by agent and Received::sent
  // Holds, by rank and then by agents of other ranks that have accessed its memory, the segment after the
  // agent's last access.
  std::vector<std::map<uint32_t, uint32_t>> visits_;
  std::vector<uint32_t> ended_;  // by rank: number of its launches that have ended
  std::vector<Epoch> used_;      // by rank: the application's last use of the output

  // These members describe the current move, its current operand, and the position in that operand.
  std::span<const Touch> sources_;
  uint32_t op_ = 0, launch_ = 0, move_ = 0, moves_ = 0;
  bool hears_ = false;  // it reads packets
  Clock base_;          // what its agent knows to have ended
  const Access* what_ = nullptr;
  uint32_t set_ = 0, member_ = 0;             // see Epoch
  uint32_t position_ = 0;                     // in each operand; nobody: unknown, because the slice is loose
  Clock over_;                                // base_, and what the packets at the position tell that thread
  std::vector<uint32_t> heard_, heard_here_;  // in told_: what over_ has and base_ lacks

  /// Holds the operands of pairs of one operation, with the numbers of their moves.
  struct Pair {
    uint32_t move;
    Range source, dest;
  };
  std::vector<Pair> pairs_;
  std::tuple<uint32_t, uint32_t, uint32_t, uint64_t> pairs_of_;  // chain, op, launch and turn
};

}  // namespace chorale::proof
