// These mutations change port channels, switch channels, groups and pipelines, and the plan as a whole.

#include <utility>

#include "chorale/collective.hpp"
#include "places.hpp"

namespace chorale::mutation {
namespace {

/// Changes each operation that fits, one at a time.
template <class Fits, class Change>
void each(const Plan& plan, Sites& out, Fits&& fits, Change&& change) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    if (fits(op)) out.add(at, [=](Edit& edit) { change(edit, at); });
  });
}

bool loops(const Op& op) { return op.body != 0; }
bool pushes(const Op& op) {
  return has_proxy(op.via) && (moves_data(op) || shape(op.code).has_any(post_roles));
}

/// Returns a rank-level channel of a type to a peer, and adds one if there is none.
uint32_t channel_to(Edit& edit, uint32_t rank, uint32_t peer, ChannelType type) {
  const Gpu& gpu = edit.plan().gpus[rank];
  for (uint32_t id = 0; id < gpu.channel_count(type); ++id) {
    if (gpu.peer(type, id) == peer) return id;
  }
  return edit.add_channel(rank, peer, type);
}

}  // namespace

void make::drop_flush(const Plan& plan, Sites& out) {
  each(
      plan, out, [](const Op& op) { return shape(op.code).has(Role::Drain); },
      [](Edit& edit, const OpPlace& at) {
        if (moves_data(block_of(edit.plan(), at).ops[at.op])) {
          edit.op(at).code = Opcode::put_with_signal;
        } else {
          edit.erase(at);
        }
      });
}

void make::duplicate_member(const Plan& plan, Sites& out) {
  each(
      plan, out, [](const Op& op) { return op.group_size > 1; },
      [](Edit& edit, const OpPlace& at) {
        Op& op = edit.op(at);
        op.group_index = uint16_t((op.group_index + 1) % op.group_size);
      });
}

void make::pipeline_unit(const Plan& plan, Sites& out) {
  each(plan, out, loops, [](Edit& edit, const OpPlace& at) { edit.op(at).unit_bytes *= 2; });
}

void make::pipeline_chunks(const Plan& plan, Sites& out) {
  each(plan, out, loops, [](Edit& edit, const OpPlace& at) { edit.op(at).chunks += 1; });
}

void make::pipeline_body(const Plan& plan, Sites& out) {
  each(
      plan, out, [](const Op& op) { return op.body > 1; },
      [](Edit& edit, const OpPlace& at) { edit.op(at).body -= 1; });
}

void make::flip_in_place(const Plan&, Sites& out) {
  out.add_part(
      {}, [](Edit& edit) { edit.change(edit.plan().inplace) = !edit.plan().inplace; }, "the plan");
}

void make::flip_reuse(const Plan& plan, Sites& out) {
  bool any = false;
  for_each_op(plan,
              [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace) { any |= loops(op); });
  if (!any) return;
  out.add_part(
      {}, [](Edit& edit) { edit.change(edit.plan().reuse_resources) = !edit.plan().reuse_resources; },
      "the plan");
}

void make::wrong_root(const Plan& plan, Sites& out) {
  if (!collective_info(plan.collective).has_root() || plan.ranks() < 2) return;
  out.add_part(
      {},
      [](Edit& edit) {
        uint32_t& root = edit.change(edit.plan().extension.root);
        root = (root + 1) % edit.plan().ranks();
      },
      "the plan");
}

void make::drop_switch_member(const Plan& plan, Sites& out) {
  for (const Gpu& gpu : plan.gpus) {
    for (uint32_t record = 0; record < gpu.channels.size(); ++record) {
      for (uint32_t group = 0; group < gpu.channels[record].rank_groups.size(); ++group) {
        const std::vector<uint32_t>& ranks = gpu.channels[record].rank_groups[group];
        const auto other =
            std::find_if(ranks.rbegin(), ranks.rend(), [&](uint32_t rank) { return rank != gpu.id; });
        if (other == ranks.rend()) continue;
        out.add_part(
            {gpu.id, 0, 0},
            [rank = gpu.id, record, group, gone = *other](Edit& edit) {
              std::erase(edit.change(edit.plan().gpus[rank].channels[record].rank_groups[group]), gone);
            },
            "switch group " + std::to_string(group) + " of record " + std::to_string(record));
      }
    }
  }
}

void make::swap_channel_type(const Plan& plan, Sites& out) {
  each(
      plan, out, [](const Op& op) { return op.code == Opcode::put || op.code == Opcode::put_packets; },
      [](Edit& edit, const OpPlace& at) {
        const Gpu& gpu = edit.plan().gpus[at.rank];
        const ThreadBlock& block = block_of(edit.plan(), at);
        const Op op = block.ops[at.op];
        const bool to_port = op.via == ChannelType::memory;
        const ChannelType via = to_port ? ChannelType::port : ChannelType::memory;
        std::vector<Operand> sources = source_list(block, op), dests = dest_list(block, op);
        std::vector<uint32_t> ids;
        for (Operand& to : dests) {
          const RemoteBuffer remote = *remote_buffer(gpu, block, op.via, to.ref);
          to.ref = edit.remote_buffer(at, via, remote.rank, remote.buffer);
          if (to_port) ids.push_back(edit.channel(at, via, channel_to(edit, at.rank, remote.rank, via)));
        }
        edit.set_operands(at, std::move(sources), std::move(dests));
        edit.set_ids(at, std::move(ids));
        edit.op(at).via = via;
      });
}

void make::reorder_pushes(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (!pushes(op)) return;
    const auto next =
        nearest_behind(block, at.op, [](const Op& behind) { return behind.code != Opcode::nop; });
    if (!next || !pushes(block.ops[*next])) return;
    out.add(at, [=](Edit& edit) {
      std::vector<Op>& ops = edit.block(at).ops;
      std::swap(ops[at.op], ops[*next]);
    });
  });
}

}  // namespace chorale::mutation
