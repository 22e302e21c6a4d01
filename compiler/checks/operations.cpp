// This file is the part of the structure check that looks at operations, by their roles.

#include <map>
#include <utility>

#include "chorale/limits.hpp"
#include "compiler/plan/resolve.hpp"
#include "compiler/plan/roles.hpp"
#include "structure.hpp"

namespace chorale {
namespace {

/// Checks one operation.
class OpCheck {
 public:
  OpCheck(const Plan& plan, const Gpu& gpu, const ThreadBlock& block, const Op& op, OpPlace at,
          Report& report)
      : plan_(plan), gpu_(gpu), block_(block), op_(op), row_(shape(op.code)), at_(at), report_(report) {}

  void all(const Op* loop) {
    if (!in_pools()) return;
    if (const uint32_t line = plan_.first_at(op_); line > plan_.source.size())
      fail("its line is number " + number(line - 1) + ", but the plan knows " + number(plan_.source.size()),
           "at");
    list(false, "source");
    list(true, "destination");
    if (pairs() && op_.sources != op_.destinations) {
      fail(
          name() + " has " + count(op_.sources, "source") + ", but " + count(op_.destinations, "destination"),
          "dst_buff");
    }
    via();
    // One part of a plan's sum does not know the number of addends. The executor knows it.
    if (row_.has(Role::Reduce) && op_.reduce_op == ReduceOp::avg) {
      report_.add(at_, name() + " reduces by avg, but plans only add: the executor divides at the end",
                  "let it reduce by sum, and ask for avg where the plan is executed", "reduce_op");
    }
    for_each_operand(block_, op_,
                     [&](const Field& field, const Operand& operand) { target(field, operand); });
    ids();
    group();
    pipeline(loop);
  }

 private:
  static std::string channel_path(size_t position) { return "channel_ids/" + number(position); }
  std::string name() const { return "'" + std::string(info(op_.code).name) + "'"; }
  /// \param path  the wrong part of the operation, see Diagnostic::path
  void fail(std::string text, std::string path = {}) {
    report_.add(at_, std::move(text), {}, std::move(path));
  }
  /// Returns whether the operation has one destination per source.
  bool pairs() const {
    return row_.sources.size() == 1 && row_.dests.size() == 1 && row_.sources[0].many && row_.dests[0].many;
  }

  /// Returns whether all ranges are inside the pools. Plans built in memory may point outside.
  bool in_pools() {
    const uint64_t operands = uint64_t(op_.first_operand) + op_.sources + op_.destinations;
    if (operands <= block_.operands.size() && uint64_t(op_.first_id) + op_.ids <= block_.ids.size())
      return true;
    fail(name() + " lies outside the operands or ids of its thread block");
    return false;
  }

  void list(bool in_dst, const char* noun) {
    const std::span<const Field> fields = in_dst ? row_.dests : row_.sources;
    const uint32_t found = in_dst ? op_.destinations : op_.sources;
    const bool many = !fields.empty() && fields.back().many;
    if (many ? found >= fields.size() : found == fields.size()) return;
    fail(name() + " has " + count(found, noun) + ", expected " + (many ? "at least " : "") +
             number(fields.size()),
         in_dst ? "dst_buff" : "src_buff");
  }

  void via() {
    if (!row_.has(Role::Via)) {
      if (op_.via != ChannelType::none) fail(name() + " has a channel type, expected none", "channel_type");
      return;
    }
    const bool data = op_.sources + op_.destinations;
    const auto want = [&](bool (*fits)(ChannelType)) {
      if (fits(op_.via)) return;
      std::string expected;
      for (const ChannelType type : all_channel_types) {
        if (fits(type))
          expected += (expected.empty() ? "" : " or ") + std::string(channel_type_names[size_t(type)]);
      }
      fail(name() + " goes over " + std::string(channel_type_names[size_t(op_.via)]) +
               " channels, expected " + expected,
           "channel_type");
    };
    if (row_.has_any(switched_roles)) return want(is_switched);
    // A proxy can neither read for us, nor reduce, nor post without order.
    const bool by_proxy_only = row_.has(Role::Drain) || (data && row_.has(Role::Post));
    const bool directly_only = row_.has(Role::Reduce) || row_.has(Role::RemoteRead) ||
                               row_.has(Role::PostRelaxed) || row_.has(Role::AwaitRelaxed);
    want(by_proxy_only ? has_proxy : directly_only ? is_direct : has_signals);
  }

  void target(const Field& field, const Operand& operand) {
    const auto what = [&] { return std::string(field.name) + " of " + name(); };
    int64_t buffer = -1;
    if (is_remote(field.role)) {
      const RemoteBuffer* remote = remote_buffer(gpu_, block_, op_.via, operand.ref);
      if (remote)
        buffer = int64_t(remote->buffer);
      else
        fail(what() + " is in remote buffer " + number(operand.ref) +
                 " of its thread block, which has no such buffer",
             operand_path(block_, op_, operand) + "/buffer_id");
    } else if (is_switched(field.role)) {
      const SwitchGroup group = switch_group(gpu_, block_, operand.ref);
      if (group.ranks)
        buffer = int64_t(group.buffer);
      else
        fail(what() + " is in switch channel " + number(operand.ref) +
                 " of its thread block, which has no such channel",
             operand_path(block_, op_, operand) + "/switch_channel_id");
    } else if (operand.ref < std::size(buffer_names)) {
      buffer = operand.ref;
    } else {
      fail(what() + " is in buffer " + number(operand.ref) + ", expected 0 to 2",
           operand_path(block_, op_, operand) + "/type");
    }
    if (is_packet(field.role) && buffer >= 0 && BufferKind(buffer) != BufferKind::scratch) {
      fail(what() + " holds packets in the " + std::string(buffer_names[size_t(buffer)]) +
               " buffer, expected scratch",
           operand_path(block_, op_, operand));
    }
  }

  void ids() {
    const std::span<const uint32_t> list = block_.op_ids(op_);
    switch (id_kind(row_, op_.via)) {
      case IdKind::none:
        return;
      case IdKind::channel:
        return channels(list);
      case IdKind::semaphore:
        if (list.empty()) fail(name() + " has no semaphores, expected at least 1", "semaphore_ids");
        for (size_t k = 0; k < list.size(); ++k) {
          if (list[k] < gpu_.semaphores.size()) continue;
          fail(name() + " names semaphore " + number(list[k]) + ", but " + rank_name(gpu_.id) + " has " +
                   number(gpu_.semaphores.size()),
               "semaphore_ids/" + number(k));
        }
        return;
      case IdKind::barrier:
        if (list.size() != 1) return fail(name() + " has " + count(list.size(), "id") + ", expected 1");
        if (list[0] >= max_barriers)
          fail(name() + " has id " + number(list[0]) + ", expected less than " + number(max_barriers),
               "barrier_id");
        if (!op_.participants)
          fail(name() + " is for 0 thread blocks, expected at least 1", "num_threadblocks");
    }
  }

  /// Checks that the channels exist and lead to the ranks of the operands beside them.
  void channels(std::span<const uint32_t> list) {
    if (!has_signals(op_.via)) return;  // reported already
    if (list.empty()) fail(name() + " has no channels, expected at least 1", "channel_ids");
    for (size_t k = 0; k < list.size(); ++k) {
      if (peer_of(gpu_, block_, op_.via, list[k]) >= 0) continue;
      fail(name() + " names channel " + number(list[k]) + " of its thread block, which has no such " +
               std::string(channel_type_names[size_t(op_.via)]) + " channel",
           channel_path(k));
    }
    const bool in_dst = !row_.dests.empty() && is_remote(row_.dests.back().role);
    const bool in_src = !row_.sources.empty() && is_remote(row_.sources.back().role);
    if (!in_dst && !in_src) return;
    const std::span<const Operand> remote = in_dst ? block_.dests(op_) : block_.sources(op_);
    if (list.size() != remote.size()) {
      return fail(name() + " has " + count(list.size(), "channel") + ", but " +
                      count(remote.size(), "remote operand"),
                  "channel_ids");
    }
    for (size_t k = 0; k < list.size(); ++k) {
      const RemoteBuffer* buffer = remote_buffer(gpu_, block_, op_.via, remote[k].ref);
      const int64_t peer = peer_of(gpu_, block_, op_.via, list[k]);
      if (!buffer || peer < 0 || buffer->rank == uint64_t(peer)) continue;
      fail(name() + " goes over channel " + number(list[k]) + " to " + rank_name(uint64_t(peer)) +
               ", but its remote buffer " + number(remote[k].ref) + " is on " + rank_name(buffer->rank),
           channel_path(k));
    }
  }

  void group() {
    if (!op_.group_size) return;
    if (!row_.has(Role::Sliced))
      fail(name() + " is shared by a thread block group, but cannot be shared", "tbg_info");
    if (op_.group_index >= op_.group_size) {
      fail(name() + " is member " + number(op_.group_index) + " of a thread block group of " +
               number(op_.group_size),
           "tbg_info/tb_id");
    }
  }

  void pipeline(const Op* loop) {
    if (!row_.has(Role::Loop)) {
      if (op_.body) fail(name() + " has " + count(op_.body, "operation") + " inside, expected none");
      return;
    }
    if (loop) fail("this pipeline is inside another, expected it outside");
    const uint64_t following = block_.ops.size() - at_.op - 1;
    if (op_.body > following) {
      fail(
          "this pipeline has " + count(op_.body, "operation") + ", but only " + number(following) + " follow",
          "ops");
    }
    if (!op_.unit_bytes)
      fail("this pipeline has units of 0 bytes, expected at least 1", "iter_context/unit_size");
    if (!op_.chunks) fail("this pipeline covers 0 chunks, expected at least 1", "iter_context/num_chunks");
  }

  const Plan& plan_;
  const Gpu& gpu_;
  const ThreadBlock& block_;
  const Op& op_;
  const Shape& row_;
  OpPlace at_;
  Report& report_;
};

/// Holds unit_bytes and chunks of the pipeline around an operation; zeros without a pipeline. Two operations
/// run equally often if these are equal. How often they run depends on the message.
using Turns = std::pair<uint64_t, uint64_t>;

struct BarrierUse {
  OpPlace first;
  uint32_t participants = 0;
  bool same = true;
  std::map<uint32_t, std::map<Turns, uint64_t>> arrivals;  // by thread block
};

void check_barrier(uint32_t id, const BarrierUse& use, Report& report) {
  if (!use.same) return;
  const std::string what = "barrier " + number(id);
  if (use.arrivals.size() != use.participants) {
    report.add(use.first, what + " is for " + count(use.participants, "thread block") + ", but " +
                              number(use.arrivals.size()) +
                              (use.arrivals.size() == 1 ? " arrives" : " arrive"));
    return;
  }
  const auto& [first_block, wanted] = *use.arrivals.begin();
  for (const auto& [block, found] : use.arrivals) {
    if (found == wanted) continue;
    uint64_t totals[2] = {0, 0};
    for (const auto& [turns, times] : wanted) totals[0] += times;
    for (const auto& [turns, times] : found) totals[1] += times;
    const bool loops = totals[0] == totals[1];
    report.add(use.first, "thread block " + number(first_block) + " arrives at " + what + " " +
                              count(totals[0], "time") + ", but thread block " + number(block) + " " +
                              count(totals[1], "time") + (loops ? " in other pipelines" : ""));
  }
}

}  // namespace

bool check_operations(const Plan& plan, Report& report) {
  bool barriers = false;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op* loop, OpPlace at) {
    barriers |= shape(op.code).has(Role::Arrive);
    OpCheck(plan, gpu, block, op, at, report).all(loop);
  });
  return barriers;
}

void check_barriers(const Plan& plan, Report& report) {
  std::map<std::pair<uint32_t, uint32_t>, BarrierUse> uses;  // by rank and id
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op* loop, OpPlace at) {
    if (!shape(op.code).has(Role::Arrive) || op.ids != 1 || op.first_id >= block.ids.size()) return;
    const uint32_t id = block.op_ids(op)[0];
    BarrierUse& use = uses[{gpu.id, id}];
    if (use.arrivals.empty()) {
      use.first = at;
      use.participants = op.participants;
    } else if (use.participants != op.participants && use.same) {
      use.same = false;
      report
          .add(at, "barrier " + number(id) + " is for " + count(op.participants, "thread block") +
                       " here, but for " + number(use.participants) + " elsewhere")
          .notes.push_back({{}, use.first, "the other use is here"});
    }
    ++use.arrivals[at.threadblock][loop ? Turns{loop->unit_bytes, loop->chunks} : Turns{}];
  });
  for (const auto& [key, use] : uses) check_barrier(key.second, use, report);
}

}  // namespace chorale
