/// \file
/// By these addresses a switch reaches the memory of several ranks at once.
#pragma once

#include <cstdint>
#include <vector>

#include "program.hpp"

namespace chorale::lowering {

/// Memory of the members of a switch channel that has one address at the switch.
struct SwitchAlias {
  std::vector<char*> members;  ///< the beginning of each member's memory, in the order of the ranks
  char* at = nullptr;          ///< the address of these beginnings at the switch
  uint64_t bytes = 0;          ///< bytes of each member
};

/// All aliases that one rank's program may use.
struct SwitchAliases {
  std::vector<SwitchAlias> all;
  char *in = nullptr, *out = nullptr;  ///< the input and output that are passed in every launch

  /// Returns the address at the switch of the place that is `offset` bytes after members[0] .. members[n-1],
  /// which may be ProgramPlace::in or out. Null: these are not at the same place in memory that the switch
  /// reaches.
  char* find(char* const* members, uint32_t n, uint64_t offset) const;
};

/// The whole units of a piece of data, which a switch moves.
struct UnitsWithin {
  uint64_t first = 0, bytes = 0;
};

/// Returns the whole units of `bytes` bytes from one place to another; none if the places are not aligned
/// alike. What is passed counts as aligned.
UnitsWithin units_within(uint64_t bytes, const ProgramPlace& from, const ProgramPlace& to);

}  // namespace chorale::lowering
