/// \file
/// Plans whose ranks are on several hosts: what they may not do, and whether they have to reach over.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale::interpreter {

using HostOf = std::function<uint32_t(uint32_t rank)>;

/// Whether a port channel of any rank leads to another host: the same on all ranks.
/// \throws UsageError if `rank` cannot run a plan that build_image() takes: it touches memory of another host
///         otherwise than through a port channel to its rank, or there is no UCX
bool checked_hosts(const Plan&, uint32_t rank, const HostOf&);

/// Whether `rank` sends packets to `peer` over a port channel.
bool sends_packets(const Plan&, uint32_t rank, uint32_t peer);

/// Ranks of other hosts that are connected with `rank` by port channels, whichever way they lead.
std::vector<int> far_peers(const Plan&, uint32_t rank, const HostOf&);

}  // namespace chorale::interpreter
