#pragma once
/// \file
/// A Trail keeps the writes of an execution, and finds the one at fault when an output is wrong.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/proof/execution/memory.hpp"
#include "promise.hpp"
#include "value.hpp"

namespace chorale::proof {

class Trail {
 public:
  static constexpr uint32_t none = ~uint32_t{0};
  /// Limits the number of writes. A Trail that is full finds nothing.
  static constexpr size_t most = size_t(1) << 22;

  struct Write {
    uint32_t cell;
    uint32_t value;  ///< in the Values
    uint32_t chain, op;
    uint32_t first_source = 0, sources = 0;  ///< the cells that it copies or combines, see sources_of()
    uint32_t before = none;                  ///< position of the previous write of the cell
    uint32_t fault = none;  ///< what follow() found, because many outputs lead to the same writes
  };

  struct Source {
    uint32_t cell;
    uint32_t from;  ///< position of the last write of the cell before it is read; none if there is none
  };

  /// Says what a write at fault did.
  enum class Fault : uint8_t {
    wrong,    ///< it writes something wrong, and nothing before it does
    misread,  ///< it reads a place that does not hold what belongs to the output, which another place of that
              ///< rank holds
    misplaced,  ///< it writes what belongs to the output to a place that others overwrite, and not to the one
                ///< from which it is read
    mislaid,    ///< it writes what belongs to the output to another place of the same rank
    unused,     ///< it writes what belongs to the output to scratch, from which nothing copies it
    strayed,   ///< it writes what belongs to the output to a place of another rank that should hold something
               ///< else
    repeated,  ///< it writes what belongs to the output to another output that holds it already
  };

  struct Blame {
    Write write;
    Fault fault;
    /// The place from which the value is read, if misread or misplaced. If wrong: the place that it reads, if
    /// nothing has written there.
    uint32_t read = none;
    std::optional<Write> right = {};  ///< misread: the write of what belongs to the output
    bool sure = true;                 ///< false: the values have too many parts to look further
    bool one_of =
        false;  ///< misplaced: `read` is one of several places, and the value belongs to any of them
  };

  /// \param promise  not of_some_sender()
  Trail(const Memory& memory, Promise& promise, const Values& values)
      : memory_(memory), promise_(promise), values_(values), last_(memory.cells(), none) {}

  /// Adds a write. It keeps the cells that the write copies or combines.
  void add(Write, std::span<const uint32_t> sources);
  /// Adds a write of the same value by the same operation to another destination. It has the same sources,
  /// although the first destination may be one of them.
  /// \param first  position of the write to the first destination in writes()
  void add_again(Write, size_t first);

  /// Finds the write because of which a cell of an output does not hold what it should.
  std::optional<Blame> find(uint32_t cell);

  /// Returns the cell from which a write copies, or none if it combines several.
  uint32_t copied(const Write& write) const {
    return write.sources == 1 ? sources_[write.first_source].cell : none;
  }
  /// Returns what is promised of a cell, or nothing if it is in no output or nothing is promised there.
  std::optional<Sum> promised(uint32_t cell);
  /// Returns whether a write puts something into an output that does not belong there.
  bool misses(const Write&);
  std::span<const Source> sources_of(const Write& write) const {
    return std::span(sources_).subspan(write.first_source, write.sources);
  }
  std::span<const Write> writes() const { return writes_; }

 private:
  /// Holds what a place should hold, from which the parts that have been found are taken.
  struct Wanted {
    struct Part {
      Origin origin;
      uint64_t times;
    };
    std::vector<Part> parts;  ///< by origin
    uint64_t left = 0;        ///< the sum of all `times`
    Sum sum = 0;

    void add(const Part&);
    Part* find(const Origin&);
  };

  /// These limit the parts of values that all calls of find() look at together. So they take no longer than
  /// the proof.
  static constexpr uint64_t least_parts = uint64_t(1) << 20, parts_per_write = 32;
  bool exhausted() const { return seen_ > least_parts + parts_per_write * writes_.size(); }

  void push(Write);
  uint32_t follow(uint32_t write, Sum wanted);
  bool copies_promised(const Write&, Sum wanted);
  void list_elsewhere();
  std::optional<Blame> find_elsewhere(uint32_t rank, Sum wanted);
  Blame find_cause(uint32_t at);
  const Wanted& wanted_in(uint32_t cell);
  bool take(const Source&, Wanted&);
  void keep_ranks_of(const Source&, Wanted&);
  const Source* wrong_operand(uint32_t at, Wanted&, bool& several);
  uint32_t written_beside(uint32_t rank, const Write& reader, const Wanted&);
  Blame find_operand(uint32_t at, Wanted);
  uint32_t written_on(uint32_t rank, Sum);
  void list_collisions();
  bool is_promised_on(uint32_t rank, Sum);
  bool is_input(uint32_t cell) const;
  bool is_empty(const Source&) const;
  bool leads_on(const Source&) const;

  const Memory& memory_;
  Promise& promise_;
  const Values& values_;
  std::vector<Write> writes_;
  std::vector<Source> sources_;
  std::vector<uint32_t> last_;  // by cell: position in writes_
  uint64_t seen_ = 0;           // parts, see exhausted()
  bool listed_ = false;
  /// These hold the first write of its kind, by what it writes and by the rank to which it writes it.
  std::map<std::pair<Sum, uint32_t>, uint32_t> mislaid_, unused_, scratch_;
  std::map<Sum, uint32_t> mislaid_anywhere_, repeated_;
  std::set<std::pair<uint32_t, uint32_t>> collide_;  ///< chains and ops, see list_collisions()
  std::map<uint32_t, std::set<Sum>> promises_;       ///< by rank, see is_promised_on()
  std::map<Sum, Wanted> wanted_;                     ///< see wanted_in()
  std::unordered_map<uint32_t, Blame> causes_;       ///< by write, see find_cause()
};

}  // namespace chorale::proof
