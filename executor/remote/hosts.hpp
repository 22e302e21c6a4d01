/// \file
/// These functions check plans whose ranks are on several hosts, and tell whether a plan crosses hosts.
#pragma once

#include <cstdint>
#include <functional>

#include "chorale/plan.hpp"
#include "endpoint.hpp"
#include "executor/lowering/control_block.hpp"

namespace chorale::remote {

using HostOf = std::function<uint32_t(uint32_t rank)>;

/// Returns true if a port channel of any rank leads to another host. The answer is the same on all ranks.
/// \throws UsageError if `rank` cannot run a plan that build_image() accepts: it touches memory of another
/// host in another way than through a port channel to that rank, or there is no UCX
bool checked_hosts(const Plan&, uint32_t rank, const HostOf&);

/// Returns the scratch of a rank that its peers of other hosts may write to. Signals, and buffers of the
/// user, are left to the caller.
/// \param plain, packets  where these parts of its control block are
RemoteEndpoint::Memory memory_of(const lowering::ControlBlock&, char* plain, char* packets);

/// Returns true if `rank` sends packets to `peer` over a port channel.
bool sends_packets(const Plan&, uint32_t rank, uint32_t peer);

/// Registers a binding of a plan that crosses hosts with this rank's endpoint. Collective, because a rank
/// that sends nothing may receive.
/// \param memory  the memory that peers of other hosts may write to, where the endpoint's Copies access it
/// \return the binding's number, see RemoteEndpoint::register_binding()
uint64_t join_hosts(World&, const Plan&, RemoteEndpoint&, const RemoteEndpoint::Memory& memory);

}  // namespace chorale::remote
