/// \file
/// These functions check plans whose ranks are on several hosts, and tell whether a plan crosses hosts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale::lowering {

using HostOf = std::function<uint32_t(uint32_t rank)>;

/// Returns true if a port channel of any rank leads to another host. The answer is the same on all ranks.
/// \throws UsageError if `rank` cannot run a plan that build_image() accepts: it touches memory of another
/// host in another way than through a port channel to that rank, or there is no UCX
bool checked_hosts(const Plan&, uint32_t rank, const HostOf&);

/// Returns true if `rank` sends packets to `peer` over a port channel.
bool sends_packets(const Plan&, uint32_t rank, uint32_t peer);

/// Returns the ranks of other hosts that port channels connect with `rank`, in either direction.
std::vector<int> far_peers(const Plan&, uint32_t rank, const HostOf&);

}  // namespace chorale::lowering
