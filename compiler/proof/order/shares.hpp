#pragma once
/// \file
/// Shares lists the slices of thread block groups that have no exact position in the proofs.
///
/// A group shares an operand: each of its blocks does one slice. The position where a slice ends depends on
/// the size of the message, unless every block gets whole chunks. Two operations that share the same chunks
/// among equally many blocks have the same slices for every message. But if an operation shares these chunks
/// in another way, or shares a part of them, its slices may overlap any of these. Such a slice is called
/// loose.

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include "chorale/diagnostic.hpp"
#include "compiler/proof/execution/memory.hpp"

namespace chorale::proof {

class Shares {
 public:
  Shares(const Plan&, const Memory&);

  /// Returns 0 if this block's slice of an operand is not loose, or is the whole operand. Otherwise it
  /// returns a number, from 1 on, for the way in which the operand is shared. Slices with the same number do
  /// not overlap; slices with different numbers may.
  uint32_t loose(const Access&, const Op&, const Turn&) const;

  /// Returns an operation on packets whose slices are loose, or none. Which block's packets such a slice
  /// holds depends on the size of the message.
  const std::optional<OpPlace>& packets() const { return packets_; }

 private:
  /// Holds space, begin, end, and the number of blocks that share it.
  using Key = std::tuple<uint32_t, uint64_t, uint64_t, uint32_t>;

  const Memory& memory_;
  std::map<Key, uint32_t> loose_;
  std::optional<OpPlace> packets_;
};

}  // namespace chorale::proof
