/// \file
/// What a plan needs of multicast, if its switch channels are to go by it. Looks at no GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../interpreter/bind.hpp"
#include "chorale/layout.hpp"
#include "chorale/plan.hpp"

namespace chorale::cuda {

/// The switch channels of all ranks. Every rank finds the same.
struct SwitchUse {
  std::vector<std::vector<uint32_t>>
      groups;  ///< their members, each group once and in order; not of one rank
  bool passed = false,
       scratch = false;  ///< whether the input or output, and the scratch, of ranks are theirs

  explicit SwitchUse(const Plan& plan);
  SwitchUse() = default;
  bool any() const { return !groups.empty(); }
};

/// Where a rank's buffers lie in memory that all members of switch channels have bound, alike on all ranks:
/// input, output, then scratch.
struct SwitchRoom {
  uint64_t scratch_at = 0, bytes = 0;

  SwitchRoom(const Plan& plan, const Layout& layout, const SwitchUse& use);
};

/// Whether a switch can combine elements so; avg is a sum. What multimem.def says.
bool multicast_combines(DType dtype, ReduceOp op);

/// Why this rank's part of a plan cannot go by multicast, with what to do; empty: nothing here forbids it.
///
/// A switch adds in an order of its own. A certificate that says how sums are rounded would not hold, so such
/// a plan is refused where the order shows: in sums of floats.
std::string refuse_multicast(const Plan& plan, const interpreter::BoundImage& image, DType dtype);

}  // namespace chorale::cuda
