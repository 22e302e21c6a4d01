/// \file
/// This file finds out what a plan needs so that its switch channels can use multicast. It uses no GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chorale/layout.hpp"
#include "chorale/plan.hpp"
#include "executor/lowering/bind.hpp"

namespace chorale::cuda {

/// Lists the switch channels of all ranks. Every rank computes the same list.
struct SwitchUse {
  std::vector<std::vector<uint32_t>>
      groups;  ///< the members, each group once and in order; groups of one rank are left out
  bool passed = false,
       scratch = false;  ///< they use the input or output (passed), or the scratch, of ranks

  explicit SwitchUse(const Plan& plan);
  SwitchUse() = default;
  bool any() const { return !groups.empty(); }
};

/// Lays out a rank's buffers in the memory that all members of switch channels have bound: input, output,
/// then scratch. The layout is the same on all ranks.
struct SwitchRoom {
  uint64_t scratch_at = 0, bytes = 0;

  SwitchRoom(const Plan& plan, const Layout& layout, const SwitchUse& use);
};

/// Returns true if a switch can combine elements with `op`, according to multimem.def. avg counts as a sum.
bool multicast_combines(DType dtype, ReduceOp op);

/// Returns why this rank's part of a plan cannot use multicast, and what to do. Empty: nothing here forbids
/// it.
///
/// A switch adds in an order of its own, so a certificate that says how sums are rounded would not hold. Such
/// a plan is refused if the order affects the result: in sums of floats.
std::string refuse_multicast(const Plan& plan, const lowering::BoundImage& image, DType dtype);

}  // namespace chorale::cuda
