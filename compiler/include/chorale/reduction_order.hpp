#pragma once
/// \file
/// The reduction order of a plan says in which order it adds up the data of ranks, and so which plans compute
/// the same bits.

#include <optional>
#include <string>

#include "chorale/plan.hpp"

namespace chorale {

/// Returns ProofFacts::order of a plan. It comes from the certificate if that is valid. Otherwise the whole
/// plan is checked and proved.
/// \returns nothing if elements are added up in different orders, if the order is unknown (as for host
///   schedules), or if there are findings
/// \throws std::invalid_argument if the plan was loaded for one rank and has no certificate with the order
std::optional<std::string> reduction_order(const Plan&);

/// Returns whether each element is added up in the order of the ranks and rounded once ("0 + 1 + 2"), or
/// nothing is added up. The bits of a sum then depend only on its addends, and not on its position, the size
/// of the message, or the plan.
/// \throws as reduction_order()
bool in_rank_order(const Plan&);

/// Returns whether switch channels combine the data of ranks. If GPUs do that by multicast (switch_channels),
/// no plan knows the order in which they add.
bool combines_on_switch(const Plan&);

}  // namespace chorale
