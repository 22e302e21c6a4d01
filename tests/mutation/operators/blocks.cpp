// These mutations change how the threads and the thread blocks of a rank wait for each other.

#include <set>
#include <utility>

#include "places.hpp"

namespace chorale::mutation {
namespace {

/// Removes each operation that fits, one at a time.
template <class Fits>
void drop(const Plan& plan, Sites& out, Fits&& fits) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    if (fits(op)) out.add(at, [=](Edit& edit) { edit.erase(at); });
  });
}

void drop_semaphore(const Plan& plan, Sites& out, Role role) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    if (!shape(op.code).has(role)) return;
    for (uint32_t position = 0; position < op.ids; ++position) {
      out.add(
          at, [=](Edit& edit) { edit.erase_id(at, position); },
          "semaphore " + std::to_string(position) + " of its list");
    }
  });
}

bool arrives(const Op& op) { return shape(op.code).has(Role::Arrive); }

/// Copies an operation to another block of the rank, whose lists may differ.
void copy_to_block(Edit& edit, const OpPlace& from, const OpPlace& to) {
  const Gpu& gpu = edit.plan().gpus[from.rank];
  const ThreadBlock& source = gpu.threadblocks[from.threadblock];
  const Op op = source.ops[from.op];
  std::vector<Operand> lists[] = {source_list(source, op), dest_list(source, op)};
  std::vector<uint32_t> ids(source.op_ids(op).begin(), source.op_ids(op).end());
  for (const bool in_dst : {false, true}) {
    for (size_t position = 0; position < lists[in_dst].size(); ++position) {
      Operand& operand = lists[in_dst][position];
      const Role role = shape(op.code).field(in_dst, position)->role;
      if (is_remote(role)) {
        const RemoteBuffer remote = *remote_buffer(gpu, source, op.via, operand.ref);
        operand.ref = edit.remote_buffer(to, op.via, remote.rank, remote.buffer);
      } else if (is_switched(role)) {
        operand.ref = edit.channel(to, ChannelType::switched,
                                   uint32_t(channel_id(source, ChannelType::switched, operand.ref)));
      }
    }
  }
  if (id_kind(shape(op.code), op.via) == IdKind::channel) {
    for (uint32_t& id : ids) id = edit.channel(to, op.via, uint32_t(channel_id(source, op.via, id)));
  }
  edit.insert(to, op);
  edit.set_operands(to, std::move(lists[0]), std::move(lists[1]));
  edit.set_ids(to, std::move(ids));
}

}  // namespace

void make::drop_nop(const Plan& plan, Sites& out) {
  drop(plan, out, [](const Op& op) { return op.code == Opcode::nop; });
}

void make::drop_barrier(const Plan& plan, Sites& out) { drop(plan, out, arrives); }

void make::barrier_count(const Plan& plan, Sites& out) {
  std::set<std::pair<uint32_t, uint32_t>> seen;  // rank and id
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (!arrives(op) || op.participants < 2) return;
    const uint32_t id = block.op_ids(op)[0];
    if (!seen.insert({gpu.id, id}).second) return;
    out.add(at, [=](Edit& edit) {
      for_each_op(edit.plan(), at.rank,
                  [&](const Gpu&, const ThreadBlock& in, const Op& use, const Op*, OpPlace where) {
                    if (arrives(use) && in.op_ids(use)[0] == id) edit.op(where).participants -= 1;
                  });
    });
  });
}

void make::barrier_wrong_id(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (!arrives(op)) return;
    const uint32_t id = block.op_ids(op)[0];
    out.add(at, [=](Edit& edit) { edit.set_ids(at, {id ? id - 1 : id + 1}); });
  });
}

void make::late_nop(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (op.code != Opcode::nop || at.op + 1 >= block.ops.size() || !same_loop(block, at.op, at.op + 1))
      return;
    if (block.ops[at.op + 1].code == Opcode::nop || block.ops[at.op + 1].body) return;
    out.add(at, [=](Edit& edit) {
      std::vector<Op>& ops = edit.block(at).ops;
      std::swap(ops[at.op], ops[at.op + 1]);
    });
  });
}

void make::semaphore_init(const Plan& plan, Sites& out) {
  for (const Gpu& gpu : plan.gpus) {
    for (uint32_t id = 0; id < gpu.semaphores.size(); ++id) {
      std::optional<OpPlace> first;
      for_each_op(
          plan, gpu.id, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
            const std::span<const uint32_t> ids = block.op_ids(op);
            const bool of_it =
                shape(op.code).has(Role::Acquire) && std::find(ids.begin(), ids.end(), id) != ids.end();
            if (of_it && !first) first = at;
          });
      const auto raise = [rank = gpu.id, id](Edit& edit) {
        edit.change(edit.plan().gpus[rank].semaphores)[id] += 1;
      };
      const std::string what = "semaphore " + std::to_string(id);
      first ? out.add(*first, raise, what) : out.add_part({gpu.id, 0, 0}, raise, what);
    }
  }
}

void make::drop_acquire(const Plan& plan, Sites& out) { drop_semaphore(plan, out, Role::Acquire); }
void make::drop_release(const Plan& plan, Sites& out) { drop_semaphore(plan, out, Role::Release); }

void make::move_to_other_block(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock&, const Op& op, const Op* loop, OpPlace at) {
    if (!moves_data(op) || loop || gpu.threadblocks.size() < 2) return;
    const uint32_t other = (at.threadblock + 1) % uint32_t(gpu.threadblocks.size());
    // The place is as far from the beginning, but not in a pipeline.
    const ThreadBlock& in = gpu.threadblocks[other];
    uint32_t place = std::min(at.op, uint32_t(in.ops.size()));
    while (place && place < in.ops.size() && !same_loop(in, 0, place)) ++place;
    const OpPlace to{at.rank, other, place};
    out.add(
        at,
        [=](Edit& edit) {
          copy_to_block(edit, at, to);
          edit.erase(at);
        },
        "to thread block " + std::to_string(other));
  });
}

void make::drop_block(const Plan& plan, Sites& out) {
  for (const Gpu& gpu : plan.gpus) {
    for (uint32_t block = 0; block < gpu.threadblocks.size(); ++block) {
      if (gpu.threadblocks[block].ops.empty()) continue;
      const OpPlace at{gpu.id, block, 0};
      out.add_part(
          at, [=](Edit& edit) { edit.block(at).ops.clear(); }, "all of it");
    }
  }
}

}  // namespace chorale::mutation
