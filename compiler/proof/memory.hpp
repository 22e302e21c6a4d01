#pragma once
/// \file
/// All memory that a plan touches, cut into cells of which every operation touches a whole number, and
/// operands that are moved into each other the same number. So what is true of a cell is true of each of its
/// bytes.
///
/// Positions are counted in atoms: a chunk has as many that slices of thread block groups and turns of
/// pipelines begin and end at whole ones. Slices of groups are computed as if every chunk could be divided
/// evenly; where it need not be, Shares (shares.hpp) says which slices are only known to lie in an operand.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "steps.hpp"
#include "storage.hpp"

namespace chorale::proof {

/// A size of message: what of it the proof depends on.
struct Message {
  uint64_t chunk = 1;  ///< atoms
  uint64_t unit = 1;   ///< atoms of one byte of a pipeline's unit, divided by `bytes`
  uint64_t bytes = 1;
  /// An atom is the least that is shared: slices of groups are those of this message, and some of them empty.
  bool exact = false;

  /// Atoms of a turn.
  uint64_t turn(const Op& pipeline) const { return pipeline.unit_bytes / bytes * unit; }
  uint64_t turns(const Op& pipeline) const {
    return (pipeline.chunks * chunk + turn(pipeline) - 1) / turn(pipeline);
  }
};

/// The messages for which a plan is looked at: one, or with pipelines those of one and two turns of the
/// longest unit, of more turns than a block can run ahead, and those up to two turns in which the pipelines
/// take other numbers of turns, down to one for all chunks. Then the short ones in which members of groups
/// have empty slices of packets: they neither send any nor wait for any.
std::vector<Message> list_messages(const Plan&);

/// The message whose chunks have so many bytes; of one so long that blocks cannot run ahead of each other any
/// further, the shortest. Nothing: as list_messages().
std::optional<Message> message_of(const Plan&, uint64_t chunk_bytes);

/// The same with every turn that its pipelines take, however many.
std::optional<Message> message_of_all_turns(const Plan&, uint64_t chunk_bytes);

/// Where in a pipeline an operation is; turn_atoms 0: in none.
struct Turn {
  uint64_t first = 0, atoms = 0;
};

/// The cells of one memory: plain chunks of a buffer of a rank, or its packets.
struct Range {
  uint32_t space = 0;
  uint64_t begin = 0, end = 0;  ///< atoms

  bool operator==(const Range&) const = default;
};

/// Scratch has two banks, taken in turns by launches: as the executor does, or to see whether the other would
/// do.
enum class Banks : uint8_t { as_planned, one, two };

class Memory {
 public:
  /// `one_storage`: input and output are one memory wherever the plan is in place.
  Memory(const Plan&, const Message&, bool one_storage, Banks = Banks::as_planned);

  /// False: the plan needs more cells than we keep.
  bool fits() const { return fits_; }

  const Message& message() const { return message_; }

  /// All of an access in a turn, whoever of a group does it.
  Range whole(const Access&, const Turn&) const;
  /// What of an access an operation touches in a turn, as a member of its group.
  Range range(const Access&, const Op&, const Turn&) const;
  /// A whole buffer.
  Range buffer(uint32_t rank, BufferKind) const;

  uint32_t cells() const { return cells_; }
  uint32_t spaces() const { return uint32_t(spaces_.size()); }
  /// Whether there are two banks: of packets, and where the plan asks.
  bool banked(uint32_t space) const;
  bool any_packets() const { return any_packets_; }
  /// Banks of what has most.
  uint32_t banks() const { return banks_; }

  /// The first cell of a range, which begins where a cell does, in the bank of a launch.
  uint32_t cell(const Range&, uint32_t launch) const;
  uint32_t count(const Range&) const;
  /// All of a space in the bank of a launch: the first cell, and how many.
  std::pair<uint32_t, uint32_t> cells_of(uint32_t space, uint32_t launch) const;
  /// The range of one cell.
  Range range_of(uint32_t cell) const;

 private:
  /// The positions at which the cells of a space begin and end.
  struct Space {
    std::vector<uint64_t> bounds, pending;
    size_t limit = 4096;  ///< of `pending`, which most often has the same again and again
    uint64_t step = 0;    ///< from each to the next, if all are equally far; else 0
    uint32_t first = 0;

    void add(uint64_t at);
    void compact();
    bool merge();
    size_t find(uint64_t at) const;
  };

  void cut(const Range&);
  void cut_alike(std::span<const Range>);
  void cut_segments();
  bool merge();
  bool regular() const;

  const Plan& plan_;
  Message message_;
  Storage storage_;
  Banks wanted_;
  bool fits_ = true, any_packets_ = false;
  uint32_t banks_ = 1;
  uint32_t cells_ = 0;
  std::vector<Space> spaces_;
};

/// Calls visit(const Op&, const Turn&) for every operation of a block in every turn.
/// \param limit  how many calls may be made in all; what is left of it when this returns
/// \return false if there are more, then some of them have not been visited
template <class Visit>
bool for_each_turn(const Message& message, const ThreadBlock& block, uint64_t& limit, Visit&& visit) {
  for (size_t at = 0; at < block.ops.size(); ++at) {
    const Op& op = block.ops[at];
    const uint64_t turns = op.body ? message.turns(op) : 0;
    if (limit < 1 + turns * op.body) return false;
    limit -= 1 + turns * op.body;
    if (!op.body) visit(op, Turn{});
    for (uint64_t turn = 0; turn < turns; ++turn) {
      for (uint32_t inner = 1; inner <= op.body; ++inner) {
        visit(block.ops[at + inner], Turn{turn * message.turn(op), message.turn(op)});
      }
    }
    at += op.body;
  }
  return true;
}

/// Operations in all turns, at most: a plan beyond is not looked at.
inline constexpr uint64_t max_played = uint64_t(1) << 27;

}  // namespace chorale::proof
