#pragma once
/// \file
/// This header computes how much scratch a plan takes, and how many rounds a message needs to stay below a
/// limit. See docs/decisions/0023-rounds.md.

#include <cstdint>
#include <vector>

#include "chorale/layout.hpp"
#include "chorale/plan.hpp"

namespace chorale {

/// Holds the default of `window`: the rounds of a message share this many bytes of scratch, per rank and
/// binding.
inline constexpr uint64_t default_round_scratch = uint64_t(32) << 20;

/// Counts the chunks of one rank's scratch that operations of any rank access.
struct ScratchUse {
  uint64_t plain = 0;        ///< chunks that plain operands access
  uint64_t packets = 0;      ///< chunks that packets access
  uint32_t plain_banks = 1;  ///< copies of the plain chunks; 2 if Plan::use_double_scratch_buffer

  /// Returns the bytes of scratch per byte of a chunk. Packets take four: they always have two banks, and a
  /// packet with its flags is at most twice as long as its data.
  uint64_t per_chunk_byte() const { return plain_banks * plain + 4 * packets; }
};

/// Returns the use of scratch, by rank. A plan that was read for one rank does not say what the other ranks
/// do. So all of its scratch counts twice, as plain chunks and as packets.
std::vector<ScratchUse> scratch_use(const Plan&);

/// Cuts a message into rounds so that no rank takes more than `window` bytes of scratch. It returns the
/// layout with another Layout::slice_bytes. Slices are never smaller than the plan's smallest message needs,
/// even if they then take more scratch.
/// \param window  limit in bytes per rank; 0: no limit, which gives one round
Layout in_rounds(const Plan&, const std::vector<ScratchUse>&, Layout, uint64_t window);

/// Gives the scratch of the rank that needs the most, for any message. A message of n bytes takes about
///
///     min(per_message_byte * n, most)
///
/// bytes. For example, with 0.5 and 32 MiB a message of 16 MiB takes 8 MiB, and one of 1 GiB takes 32 MiB,
/// because it runs in rounds.
struct ScratchFormula {
  double per_message_byte = 0;
  uint64_t most = 0;  ///< bytes; UINT64_MAX if there is no limit, because messages run in one round
};
/// Returns the formula of a plan.
/// \param window  as in in_rounds()
/// \throws UsageError as layout_of()
ScratchFormula scratch_formula(const Plan&, uint64_t window);

}  // namespace chorale
