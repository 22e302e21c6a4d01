// These mutations change scratch and the packets in it.

#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "chorale/rewrites.hpp"
#include "places.hpp"

namespace chorale::mutation {
namespace {

/// Calls visit(place, block, operand) for every operand in scratch, of any rank; the operand is a part of the
/// block.
template <class Visit>
void each_in_scratch(const Plan& plan, Visit&& visit) {
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      const Where where = where_is(gpu, block, op, field, operand);
      if (where.buffer == BufferKind::scratch) visit(at, where, operand);
    });
  });
}

/// Changes all operands in scratch for which change(place, where, operand) returns another one.
template <class Change>
void change_scratch(Edit& edit, Change&& change) {
  OpPlace last{UINT32_MAX, 0, 0};
  each_in_scratch(edit.plan(), [&](const OpPlace& at, const Where& where, const Operand& operand) {
    const Operand changed = change(at, where, operand);
    if (changed == operand) return;
    if (at.rank != last.rank || at.threadblock != last.threadblock) edit.block(at);
    last = at;
    const_cast<Operand&>(operand) = changed;  // it is in the block that is saved
  });
}

/// Pairs an operation that packs or waits for packets with the one that does the same without flags.
struct Plain {
  Opcode packed, plain;
};
constexpr Plain writers[] = {{Opcode::copy_packets, Opcode::copy}, {Opcode::put_packets, Opcode::put}};
constexpr Plain readers[] = {{Opcode::unpack_packets, Opcode::copy},
                             {Opcode::read_put_packets, Opcode::put_packets},
                             {Opcode::reduce_packets, Opcode::reduce}};

void recode(const Plan& plan, Sites& out, std::span<const Plain> table) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    for (const Plain& row : table) {
      // One source for many destinations becomes one for each.
      if (op.code == row.packed && (op.code != Opcode::read_put_packets || op.destinations == 1)) {
        out.add(at, [at, to = row.plain](Edit& edit) { edit.op(at).code = to; });
      }
    }
  });
}

}  // namespace

void make::no_double_scratch(const Plan& plan, Sites& out) {
  if (!plan.use_double_scratch_buffer) return;
  out.add_part(
      {}, [](Edit& edit) { edit.change(edit.plan().use_double_scratch_buffer) = false; }, "the plan");
}

void make::ignore_flag(const Plan& plan, Sites& out) { recode(plan, out, readers); }
void make::plain_for_packets(const Plan& plan, Sites& out) { recode(plan, out, writers); }

void make::alias_scratch(const Plan& plan, Sites& out) {
  std::map<uint32_t, std::set<std::pair<uint64_t, uint64_t>>> slots;  // by rank: index and size
  each_in_scratch(plan, [&](const OpPlace&, const Where& where, const Operand& operand) {
    for (const uint32_t rank : where.ranks) slots[rank].insert({operand.index, operand.size});
  });
  for (const auto& [rank, of_rank] : slots) {
    for (auto slot = of_rank.begin(); slot != of_rank.end() && std::next(slot) != of_rank.end(); ++slot) {
      const auto kept = *slot, gone = *std::next(slot);
      if (kept.second != gone.second) continue;
      out.add_part(
          {rank, 0, 0},
          [=, rank = rank](Edit& edit) {
            change_scratch(edit, [&](const OpPlace&, const Where& where, Operand operand) {
              if (where.ranks == std::vector{rank} && std::pair(operand.index, operand.size) == gone) {
                operand.index = kept.first;
              }
              return operand;
            });
          },
          "chunks " + std::to_string(gone.first) + " are " + std::to_string(kept.first));
    }
  }
}

void make::share_scratch(const Plan& plan, Sites& out) {
  bool any = false;
  for (const Gpu& gpu : plan.gpus) any |= gpu.chunks[size_t(BufferKind::scratch)] != 0;
  if (!any) return;
  out.add_part(
      {},
      [](Edit& edit) {
        edit.change(edit.plan().gpus);
        edit.change(edit.plan().extension);
        pass::replicate(const_cast<Plan&>(edit.plan()), {.instances = 2});
        change_scratch(edit, [](const OpPlace& at, const Where&, Operand operand) {
          if (at.threadblock % 2) operand.index -= operand.size;
          return operand;
        });
      },
      "the plan");
}

void make::other_half(const Plan& plan, Sites& out) {
  if (!plan.use_double_scratch_buffer) return;
  for (const Gpu& of : plan.gpus) {
    out.add_part(
        {of.id, 0, 0},
        [rank = of.id](Edit& edit) {
          std::vector<uint64_t> half;
          for (const Gpu& gpu : edit.plan().gpus) half.push_back(gpu.chunks[size_t(BufferKind::scratch)]);
          for (uint32_t each = 0; each < half.size(); ++each) {
            edit.change(edit.plan().gpus[each].chunks[size_t(BufferKind::scratch)]) *= 2;
          }
          change_scratch(edit, [&](const OpPlace& at, const Where& where, Operand operand) {
            if (at.rank == rank) operand.index += half[where.ranks[0]];
            return operand;
          });
        },
        "rank " + std::to_string(of.id));
  }
}

}  // namespace chorale::mutation
