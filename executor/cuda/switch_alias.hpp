/// \file
/// Addresses by which a switch reaches the memory of several ranks at once.
#pragma once

#include <cstdint>
#include <vector>

#include "tape.hpp"

namespace chorale::cuda {

/// Memory of the members of a switch channel that has one address at the switch.
struct SwitchAlias {
  std::vector<char*> members;  ///< where each member's begins, in the order of the ranks
  char* at = nullptr;          ///< the address of that at the switch
  uint64_t bytes = 0;          ///< of each
};

/// All that one rank's tapes may use.
struct SwitchAliases {
  std::vector<SwitchAlias> all;
  char *in = nullptr, *out = nullptr;  ///< what is passed in every launch

  /// The address at the switch of the place that is `offset` bytes behind members[0] .. members[n-1], which
  /// may be TapePlace::in or out; null: these do not lie alike in memory that the switch reaches.
  char* find(char* const* members, uint32_t n, uint64_t offset) const;
};

/// Of a piece of data: the whole units that a switch moves.
struct UnitsWithin {
  uint64_t first = 0, bytes = 0;
};

/// Those of `bytes` bytes from one place to another: none if they are not aligned alike. What is passed
/// counts as aligned.
UnitsWithin units_within(uint64_t bytes, const TapePlace& from, const TapePlace& to);

}  // namespace chorale::cuda
