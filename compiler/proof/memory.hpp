#pragma once
/// \file
/// Cuts all memory that a plan touches into cells. Every operation touches a whole number of cells, and
/// operands that are moved into each other have the same number of cells. So what is true of a cell is true
/// of each of its bytes.
///
/// Positions are counted in atoms. A chunk has so many atoms that the slices of thread block groups and the
/// turns of pipelines begin and end at whole atoms. Slices of groups are computed as if every chunk could be
/// divided evenly. When a chunk cannot be, Shares (shares.hpp) says which slices are only known to lie
/// somewhere in an operand.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "steps.hpp"
#include "storage.hpp"

namespace chorale::proof {

/// A message size, reduced to the numbers that the proof depends on.
struct Message {
  uint64_t chunk = 1;  ///< atoms
  uint64_t unit = 1;   ///< atoms of one byte of a pipeline's unit, divided by `bytes`
  uint64_t bytes = 1;
  /// If true, an atom is the smallest share that a group can hand out. Slices of groups are then those of
  /// this very message, and some of them may be empty.
  bool exact = false;

  /// Returns the length of a turn, in atoms.
  uint64_t turn(const Op& pipeline) const { return pipeline.unit_bytes / bytes * unit; }
  uint64_t turns(const Op& pipeline) const {
    return (pipeline.chunks * chunk + turn(pipeline) - 1) / turn(pipeline);
  }
};

/// Returns the message sizes for which a plan is proved. A plan without pipelines needs one. A plan with
/// pipelines needs the sizes with one and two turns of the longest unit, the size with more turns than a
/// block can run ahead, and those up to two turns in which the pipelines take other numbers of turns, down to
/// one turn for all chunks. Then follow the short sizes in which some members of groups have empty slices of
/// packets: those members neither send packets nor wait for any.
std::vector<Message> list_messages(const Plan&);

/// Returns the message whose chunks have so many bytes. If the message is so long that blocks cannot run
/// ahead of each other any further, returns the shortest such message instead. Returns nothing when
/// list_messages() returns an empty list.
std::optional<Message> message_of(const Plan&, uint64_t chunk_bytes);

/// Does the same as message_of(), but keeps every turn that the pipelines take, however many.
std::optional<Message> message_of_all_turns(const Plan&, uint64_t chunk_bytes);

/// The turn of a pipeline that an operation is in. If `atoms` is 0 it is in no pipeline.
struct Turn {
  uint64_t first = 0, atoms = 0;
};

/// The cells of one memory: plain chunks of a buffer of a rank, or its packets.
struct Range {
  uint32_t space = 0;
  uint64_t begin = 0, end = 0;  ///< atoms

  bool operator==(const Range&) const = default;
};

/// Launches take turns between the two banks of scratch. A proof can use the banks that the executor uses, or
/// try out one bank or two.
enum class Banks : uint8_t { as_planned, one, two };

class Memory {
 public:
  /// \param one_storage  input and output share one memory wherever the plan is in place
  Memory(const Plan&, const Message&, bool one_storage, Banks = Banks::as_planned);

  /// Returns false if the plan needs more cells than we keep.
  bool fits() const { return fits_; }

  const Message& message() const { return message_; }

  /// Returns all that an access covers in a turn, whichever member of a group does it.
  Range whole(const Access&, const Turn&) const;
  /// Returns the part of an access that an operation touches in a turn, as a member of its group.
  Range range(const Access&, const Op&, const Turn&) const;
  /// Returns the range of a whole buffer.
  Range buffer(uint32_t rank, BufferKind) const;

  uint32_t cells() const { return cells_; }
  uint32_t spaces() const { return uint32_t(spaces_.size()); }
  /// Returns whether a space has two banks. Packets have, and so has scratch if the plan asks for it.
  bool banked(uint32_t space) const;
  bool any_packets() const { return any_packets_; }
  /// Returns the number of banks of the space that has most.
  uint32_t banks() const { return banks_; }

  /// Returns the first cell of a range in the bank of a launch. The range has to begin where a cell does.
  uint32_t cell(const Range&, uint32_t launch) const;
  uint32_t count(const Range&) const;
  /// Returns all cells of a space in the bank of a launch: the first cell and their number.
  std::pair<uint32_t, uint32_t> cells_of(uint32_t space, uint32_t launch) const;
  /// Returns the range of one cell.
  Range range_of(uint32_t cell) const;

 private:
  /// The positions at which the cells of a space begin and end.
  struct Space {
    std::vector<uint64_t> bounds, pending;
    size_t limit = 4096;  ///< of `pending`, which usually gets the same positions again and again
    uint64_t step = 0;    ///< the distance between neighbours if all are equally far apart; else 0
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
/// \param limit  the number of calls that may still be made in all; reduced by those made here
/// \return false if more calls were needed; some operations have then not been visited
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

/// The most operations, counted in all turns, of a plan that is proved.
inline constexpr uint64_t max_played = uint64_t(1) << 27;

}  // namespace chorale::proof
