#include "hosts.hpp"

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "chorale/error.hpp"
#include "executor/ucx/ucx_link.hpp"
#include "executor/world/group.hpp"

namespace chorale::remote {
namespace {

/// Searches the operations of one rank for the first that cannot run.
class Search {
 public:
  Search(const Plan& plan, uint32_t rank, const HostOf& host)
      : plan_(plan), gpu_(plan.gpus[rank]), rank_(rank), host_(host) {}

  std::string run() {
    for (const ThreadBlock& block : gpu_.threadblocks) {
      block_ = &block;
      for (const Op& op : block.ops) {
        op_ = &op;
        std::string wrong = channels();
        if (wrong.empty()) wrong = operands(block.sources(op), false);
        if (wrong.empty()) wrong = operands(block.dests(op), true);
        if (!wrong.empty()) return located(wrong);
      }
    }
    return "";
  }

 private:
  bool far(uint32_t rank) const { return host_(rank) != host_(rank_); }

  std::string located(const std::string& wrong) const {
    const SourceLine line = plan_.line_of(*op_);
    return fmt::format("plan '{}': rank {}, thread block {}, op {} ({}{}): {}", plan_.name, rank_,
                       block_ - gpu_.threadblocks.data(), op_ - block_->ops.data(), info(op_->code).name,
                       line.line ? fmt::format(", {}:{}", line.file, line.line) : "", wrong);
  }

  /// Returns the error for `what`, which is at `rank` or leads to it.
  std::string refused(const std::string& what, uint32_t rank) const {
    return fmt::format(
        "{} rank {}, which is on host {}, but rank {} is on host {}: connect ranks of different hosts by "
        "port channels",
        what, rank, host_(rank), rank_, host_(rank_));
  }

  /// Checks signals and waits over memory channels. A memory put does not use its channels.
  std::string channels() const {
    const OpInfo& row = info(op_->code);
    bool used = false;
    for (const Role role : {Role::Post, Role::PostRelaxed, Role::Await, Role::AwaitRelaxed})
      used = used || row.has(role);
    if (!used || !is_direct(op_->via)) return "";
    for (const uint32_t id : block_->op_ids(*op_)) {
      const uint32_t channel = block_->channels_of(op_->via)->ids[id];
      const uint32_t peer = uint32_t(gpu_.peer(op_->via, channel));
      if (far(peer))
        return refused(fmt::format("{} channel {} leads to", channel_type_names[size_t(op_->via)], channel),
                       peer);
    }
    return "";
  }

  std::string operands(std::span<const Operand> all, bool dests) const {
    size_t at = 0;
    for (const Field& field : info(op_->code).fields) {
      if (!is_operand(field.role) || field.in_dst != dests) continue;
      const size_t end = field.many ? all.size() : at + 1;
      for (size_t first = at; at < end; ++at) {
        std::string wrong;
        if (is_switched(field.role)) {
          wrong = members(all[at], field);
        } else if (is_remote(field.role)) {
          wrong = remote(all[at], field, at - first);
        }
        if (!wrong.empty()) return wrong;
      }
    }
    return "";
  }

  std::string members(const Operand& operand, const Field& field) const {
    const ChannelRefs* const refs = block_->channels_of(ChannelType::switched);
    const SwitchGroup group = gpu_.switch_group(refs->ids[operand.ref]);
    for (const uint32_t member : *group.ranks) {
      if (!far(member)) continue;
      return refused(fmt::format("'{}' is switch channel {}, a member of which is the {} of", field.name,
                                 refs->ids[operand.ref], buffer_names[size_t(group.buffer)]),
                     member);
    }
    return "";
  }

  std::string remote(const Operand& operand, const Field& field, size_t position) const {
    const RemoteBuffer& buffer = gpu_.remote_buffers[block_->remote_buffers_of(op_->via)->ids[operand.ref]];
    const std::string what =
        fmt::format("'{}' is the {} of", field.name, buffer_names[size_t(buffer.buffer)]);
    if (!has_proxy(op_->via)) return far(buffer.rank) ? refused(what, buffer.rank) : "";
    const uint32_t channel = block_->channels_of(op_->via)->ids[block_->op_ids(*op_)[position]];
    const uint32_t peer = uint32_t(gpu_.peer(op_->via, channel));
    if (peer == buffer.rank || (!far(peer) && !far(buffer.rank))) return "";
    return fmt::format(
        "{} rank {}, on host {}, but port channel {} leads to rank {}, on host {}: between hosts "
        "it reaches the memory of its own rank only",
        what, buffer.rank, host_(buffer.rank), channel, peer, host_(peer));
  }

  const Plan& plan_;
  const Gpu& gpu_;
  uint32_t rank_;
  const HostOf& host_;
  const ThreadBlock* block_ = nullptr;
  const Op* op_ = nullptr;
};

/// Calls visit(from, to) for each channel with a proxy that leads to another host.
template <class Visit>
void each_far_channel(const Plan& plan, const HostOf& host, Visit&& visit) {
  for (uint32_t from = 0; from < plan.ranks(); ++from) {
    for (const ChannelRecord& record : plan.gpus[from].channels) {
      if (!has_proxy(record.type)) continue;
      for (const uint32_t to : record.connected_to)
        if (host(from) != host(to)) visit(from, to);
    }
  }
}

/// Returns true if a channel of any rank leads to another host. The answer is the same on all ranks.
bool crosses_hosts(const Plan& plan, const HostOf& host) {
  bool crosses = false;
  each_far_channel(plan, host, [&](uint32_t, uint32_t) { crosses = true; });
  return crosses;
}

/// Returns the ranks of other hosts that channels with a proxy connect with `rank`, in either direction.
std::vector<int> far_peers(const Plan& plan, uint32_t rank, const HostOf& host) {
  std::set<int> peers;
  each_far_channel(plan, host, [&](uint32_t from, uint32_t to) {
    if (from == rank || to == rank) peers.insert(int(from == rank ? to : from));
  });
  return {peers.begin(), peers.end()};
}

}  // namespace

RemoteEndpoint::Memory memory_of(const lowering::ControlBlock& block, char* plain, char* packets) {
  RemoteEndpoint::Memory memory;
  memory.buffers[size_t(BufferKind::scratch)] = {plain, block.plain_bytes};
  memory.buffers[lowering::packet_kind] = {packets, block.packet_bytes};
  return memory;
}

bool checked_hosts(const Plan& plan, uint32_t rank, const HostOf& host) {
  if (const std::string wrong = Search(plan, rank, host).run(); !wrong.empty()) throw UsageError(wrong);
  if (!crosses_hosts(plan, host)) return false;
  if (const std::string missing = ucx::UcxLink::missing(); !missing.empty()) {
    throw UsageError(
        fmt::format("plan '{}': port channels connect ranks of different hosts, but {}", plan.name, missing));
  }
  return true;
}

bool sends_packets(const Plan& plan, uint32_t rank, uint32_t peer) {
  const Gpu& gpu = plan.gpus[rank];
  for (const ThreadBlock& block : gpu.threadblocks) {
    for (const Op& op : block.ops) {
      // An operation that writes packets over port channels writes nothing else.
      if (!has_proxy(op.via) || !info(op.code).has(Role::RemotePacketWrite)) continue;
      for (const Operand& dest : block.dests(op)) {
        const uint32_t buffer = block.remote_buffers_of(op.via)->ids[dest.ref];
        if (gpu.remote_buffers[buffer].rank == peer) return true;
      }
    }
  }
  return false;
}

uint64_t join_hosts(World& world, const Plan& plan, RemoteEndpoint& endpoint,
                    const RemoteEndpoint::Memory& memory) {
  const HostOf host = [&world](uint32_t rank) { return world.group().host(int(rank)); };
  endpoint.connect();
  return endpoint.register_binding(memory, far_peers(plan, uint32_t(world.rank()), host));
}

}  // namespace chorale::remote
