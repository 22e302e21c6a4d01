#pragma once
/// \file
/// Memory divides everything that a plan accesses into cells. Every operation accesses a whole number of
/// cells, and operands that are moved into each other have the same number of cells. So what is true of a
/// cell is true of each of its bytes.
///
/// Positions are counted in atoms. A chunk has so many atoms that the slices of thread block groups and the
/// turns of pipelines begin and end at whole atoms. Slices of groups are computed as if every chunk could be
/// divided evenly. If a chunk cannot, Shares (shares.hpp) says which slices have an unknown position within
/// an operand.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "steps.hpp"
#include "storage.hpp"

namespace chorale::proof {

/// Describes a message size by the numbers on which the proof depends.
struct Message {
  uint64_t chunk = 1;  ///< atoms
  uint64_t unit = 1;   ///< atoms of one byte of a pipeline's unit, divided by `bytes`
  uint64_t bytes = 1;
  /// If true, an atom is the smallest share of a group. Slices of groups are then those of this very message,
  /// and some of them may be empty.
  bool exact = false;

  /// Returns the length of a turn in atoms.
  uint64_t turn(const Op& pipeline) const { return pipeline.unit_bytes / bytes * unit; }
  uint64_t turns(const Op& pipeline) const {
    return (pipeline.chunks * chunk + turn(pipeline) - 1) / turn(pipeline);
  }
};

/// Returns the message sizes for which a plan is proved. A plan without pipelines needs one. A plan with
/// pipelines needs the sizes with one and two turns of the longest unit, and the size with more turns than a
/// block can run ahead. If the plan takes only messages of fewer turns, and of at most 16, it needs all
/// of their numbers instead. It also needs those up to two turns at which the numbers of turns of the
/// pipelines change, down to one turn for all chunks. At last come the short sizes for which some members of
/// groups have empty slices of packets. Those members neither send packets nor wait for any.
std::vector<Message> list_messages(const Plan&);

/// Returns the message whose chunks have this many bytes. If a longer message lets no block run further
/// ahead, it returns the shortest message of this kind instead. Returns nothing if list_messages() returns an
/// empty list.
std::optional<Message> message_of(const Plan&, uint64_t chunk_bytes);

/// Does the same as message_of(), but keeps every turn of the pipelines.
std::optional<Message> message_of_all_turns(const Plan&, uint64_t chunk_bytes);

/// Names the turn of a pipeline that an operation is in. If `atoms` is 0, the operation is in no pipeline.
struct Turn {
  uint64_t first = 0, atoms = 0;
};

/// Names cells of one memory: plain chunks of a rank's buffer, or its packets.
struct Range {
  uint32_t space = 0;
  uint64_t begin = 0, end = 0;  ///< atoms

  bool operator==(const Range&) const = default;
};

/// Says how many banks of scratch launches use in turns. A proof can use as many as the executor, or try one
/// or two.
enum class Banks : uint8_t { as_planned, one, two };

class Memory {
 public:
  /// \param one_storage  true: input and output share one memory wherever the plan is in place
  Memory(const Plan&, const Message&, bool one_storage, Banks = Banks::as_planned);

  /// Returns false if the plan needs more cells than the limit.
  bool fits() const { return fits_; }

  const Message& message() const { return message_; }

  /// Returns the range of an access in a turn, for all members of a group together.
  Range whole(const Access&, const Turn&) const;
  /// Returns the range of an access in a turn for one operation, as a member of its group.
  Range range(const Access&, const Op&, const Turn&) const;
  /// Returns the range of a whole buffer.
  Range buffer(uint32_t rank, BufferKind) const;

  uint32_t cells() const { return cells_; }
  uint32_t spaces() const { return uint32_t(spaces_.size()); }
  /// Returns whether a space has two banks. Packets always have two, and scratch has if the plan asks for it.
  bool banked(uint32_t space) const;
  bool any_packets() const { return any_packets_; }
  bool any_groups() const { return any_groups_; }  ///< that share operands
  /// Returns the number of banks of the space that has most.
  uint32_t banks() const { return banks_; }

  /// Returns the first cell of a range in the bank of a launch. The range must begin where a cell begins.
  uint32_t cell(const Range&, uint32_t launch) const;
  uint32_t count(const Range&) const;
  /// Returns all cells of a space in the bank of a launch: the first cell and their number.
  std::pair<uint32_t, uint32_t> cells_of(uint32_t space, uint32_t launch) const;
  /// Returns the range of one cell.
  Range range_of(uint32_t cell) const;
  /// Returns the rank whose memory has a cell.
  uint32_t rank_of(uint32_t cell) const { return range_of(cell).space / spaces_per_rank; }
  /// Returns where a cell begins in the output of its rank, or nothing if it is not in the output.
  std::optional<uint64_t> place_in_output(uint32_t cell) const;
  bool in_output(uint32_t cell) const { return place_in_output(cell).has_value(); }

 private:
  /// Holds the positions at which the cells of a space begin and end.
  struct Space {
    std::vector<uint64_t> bounds;  ///< empty in the end if `step` is not 0
    std::vector<uint64_t> pending;
    size_t limit = 4096;  ///< limit of `pending`, which usually gets the same positions repeatedly
    uint64_t start = 0;   ///< of the first cell
    uint64_t step = 0;    ///< the distance of neighbours if it is always the same; else 0
    uint32_t first = 0;
    uint32_t cells = 0;  ///< of one bank

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
  bool fits_ = true, any_packets_ = false, any_groups_ = false;
  uint32_t banks_ = 1;
  uint32_t cells_ = 0;
  std::vector<Space> spaces_;
};

/// Calls visit(const Op&, const Turn&) for every operation of a block in every turn.
/// \param limit  the number of calls that are still allowed; reduced by the calls made here
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

/// Limits the number of operations, counted in all turns, of a plan that is proved.
inline constexpr uint64_t max_executed = uint64_t(1) << 27;

}  // namespace chorale::proof
