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

  /// A slice of what a group shares that cannot be told from what operations touch that share it otherwise.
  struct Loose {
    Range whole;            ///< all that the group shares
    uint32_t set, members;  ///< slices of one set do not overlap; sets are numbered from 1 on
  };
  /// Null if the slice can be told from all others.
  const Loose* find(const Range& slice) const {
    if (loose_.empty()) return nullptr;
    const auto found = loose_.find({slice.space, slice.begin, slice.end});
    return found == loose_.end() ? nullptr : &found->second;
  }

  /// An operation with packets of which nobody can tell whose they are, as their slices are shared in several
  /// ways; none if there is none.
  const std::optional<OpPlace>& packets() const { return packets_; }

 private:
  using Key = std::tuple<uint32_t, uint64_t, uint64_t>;
  std::map<Key, Loose> loose_;
  std::optional<OpPlace> packets_;
};

}  // namespace chorale::proof
