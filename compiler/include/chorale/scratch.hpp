#pragma once
/// \file
/// Computes how much scratch a plan takes, and in how many rounds a message runs so that it takes no more.
/// See docs/decisions/0023-rounds.md.

#include <cstdint>
#include <vector>

#include "chorale/layout.hpp"
#include "chorale/plan.hpp"

namespace chorale {

/// The rounds of a message share this many bytes of scratch by default, on each rank, for one binding.
inline constexpr uint64_t default_round_scratch = uint64_t(32) << 20;

/// Counts the chunks of a rank's scratch that operations of any rank touch.
struct ScratchUse {
  uint64_t plain = 0;    ///< by plain operands
  uint64_t packets = 0;  ///< by packets
  uint32_t plain_banks = 1;

  /// Returns the bytes of scratch for each byte of a chunk. Packets have two banks, and take at most two
  /// bytes a byte.
  uint64_t per_chunk_byte() const { return plain_banks * plain + 4 * packets; }
};

/// Returns the use of scratch by rank. A plan that was read for one rank alone does not say what the others
/// do, so all of its scratch counts as both kinds.
std::vector<ScratchUse> scratch_use(const Plan&);

/// Cuts a message into rounds, so that no rank takes more than `window` bytes of scratch: sets
/// Layout::slice_bytes. Slices are at least as long as the plan's smallest message asks for, also if these
/// take more.
/// \param window  bytes; 0: one round
Layout in_rounds(const Plan&, const std::vector<ScratchUse>&, Layout, uint64_t window);

/// Says how much scratch the rank that takes the most needs, for any message.
struct ScratchFormula {
  double per_message_byte = 0;
  uint64_t most = 0;  ///< bytes that no message exceeds; UINT64_MAX: there is no such limit
};
/// Returns the formula of a plan.
/// \param window  as in_rounds()
/// \throws UsageError as layout_of()
ScratchFormula scratch_formula(const Plan&, uint64_t window);

}  // namespace chorale
