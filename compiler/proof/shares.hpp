#pragma once
/// \file
/// Where blocks of a group share an operand, the bytes at which one's slice ends depend on the size of the
/// message, unless the chunks come out even. Two operations that share the same chunks among as many blocks
/// have the same slices all the same; others may not.

#include <map>
#include <optional>
#include <tuple>

#include "chorale/diagnostic.hpp"
#include "memory.hpp"

namespace chorale::proof {

class Shares {
 public:
  Shares(const Plan&, const Memory&);

  /// A number from 1 on where a block's slice of an operand cannot be told from what operations touch that
  /// share the same chunks otherwise: then it may be any part of them. Slices of one number do not overlap. 0
  /// where the slice can be told, or all of the operand is the block's.
  uint32_t loose(const Access&, const Op&, const Turn&) const;

  /// An operation with packets of which nobody can tell whose they are, as their slices are shared in several
  /// ways; none if there is none.
  const std::optional<OpPlace>& packets() const { return packets_; }

 private:
  /// Space, begin, end, and among how many it is shared.
  using Key = std::tuple<uint32_t, uint64_t, uint64_t, uint32_t>;

  const Memory& memory_;
  std::map<Key, uint32_t> loose_;
  std::optional<OpPlace> packets_;
};

}  // namespace chorale::proof
