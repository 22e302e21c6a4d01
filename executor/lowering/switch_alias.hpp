/// \file
/// A switch reaches the memory of several ranks at once by these addresses.
#pragma once

#include <cstdint>
#include <vector>

#include "program.hpp"

namespace chorale::lowering {

/// Describes memory of a switch channel's members that has one address at the switch.
struct SwitchAlias {
  std::vector<char*> members;  ///< the start of each member's memory, in rank order
  char* at = nullptr;          ///< the address of these starts at the switch
  uint64_t bytes = 0;          ///< bytes per member
};

/// Lists all aliases that one rank's program may use.
struct SwitchAliases {
  std::vector<SwitchAlias> all;
  char *in = nullptr, *out = nullptr;  ///< the input and output that each launch passes

  /// Returns the switch's address of the place that is `offset` bytes after members[0] .. members[n-1]; the
  /// members may be ProgramPlace::in or out. Null: they are not at the same place in memory that the switch
  /// reaches.
  char* find(char* const* members, uint32_t n, uint64_t offset) const;
};

/// Gives the whole units of a piece of data, which a switch moves.
struct UnitsWithin {
  uint64_t first = 0, bytes = 0;
};

/// Returns the whole units of `bytes` bytes from one place to another, or none if the two places have
/// different alignments. Passed buffers count as aligned.
UnitsWithin units_within(uint64_t bytes, const ProgramPlace& from, const ProgramPlace& to);

}  // namespace chorale::lowering
