#pragma once
/// \file
/// A Trail keeps the writes of an execution, and finds the one at fault when an output is wrong.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
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
    uint32_t source;  ///< the cell that it copies; none if it combines several
    uint32_t value;   ///< in the Values
    uint32_t chain, op;
    uint32_t before = none;  ///< position of the previous write of the cell
    uint32_t from = none;    ///< position of the write of `source` that it copies; none if there is none
    uint32_t fault = none;   ///< what follow() found, because many outputs lead to the same writes
  };

  /// Says what a write at fault did.
  enum class Fault : uint8_t {
    wrong,     ///< it writes something wrong, and nothing before it does
    mislaid,   ///< it writes what belongs to the output to another place of the same rank
    unused,    ///< it writes what belongs to the output to scratch, from which nothing copies it
    strayed,   ///< it writes what belongs to the output to a place of another rank that should hold something
               ///< else
    repeated,  ///< it writes what belongs to the output to another output that holds it already
  };

  /// \param promise  not of_some_sender()
  Trail(const Memory& memory, Promise& promise, const Values& values)
      : memory_(memory), promise_(promise), values_(values), last_(memory.cells(), none) {}

  void add(const Write&);

  /// Finds the write because of which a cell of an output does not hold what it should. Something must be
  /// promised there.
  std::optional<std::pair<Write, Fault>> find(uint32_t cell);

 private:
  /// Returns what is promised of a cell, or nothing if it is in no output or nothing is promised there.
  std::optional<Sum> promised(uint32_t cell);
  bool copies_promised(const Write&, Sum wanted);
  uint32_t follow(uint32_t write, Sum wanted);
  void list_elsewhere();
  std::optional<std::pair<Write, Fault>> find_elsewhere(uint32_t rank, Sum wanted);

  const Memory& memory_;
  Promise& promise_;
  const Values& values_;
  std::vector<Write> writes_;
  std::vector<uint32_t> last_;  // by cell: position in writes_
  bool listed_ = false;
  /// These hold the first write of its kind, by what it writes and by the rank to which it writes it.
  std::map<std::pair<Sum, uint32_t>, uint32_t> mislaid_, unused_;
  std::map<Sum, uint32_t> mislaid_anywhere_, repeated_;
};

}  // namespace chorale::proof
