// These mutations change operations on data as a whole.

#include <utility>

#include "places.hpp"

namespace chorale::mutation {
namespace {

bool reduces(const Op& op) { return shape(op.code).has(Role::Reduce); }

/// Returns the index of the first addend of a reduction with any number of addends; else its number of
/// sources.
size_t first_addend(const Op& op) {
  const std::span<const Field> fields = shape(op.code).sources;
  return !fields.empty() && fields.back().many ? fields.size() - 1 : op.sources;
}

}  // namespace

void make::duplicate_addend(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    if (!reduces(op) || first_addend(op) >= op.sources) return;
    out.add(at, [=](Edit& edit) {
      const ThreadBlock& block = block_of(edit.plan(), at);
      std::vector<Operand> sources = source_list(block, op);
      sources.push_back(sources.back());
      edit.set_operands(at, std::move(sources), dest_list(block, op));
    });
  });
}

void make::drop_addend(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    const size_t first = first_addend(op);
    if (!reduces(op) || first >= op.sources) return;
    const bool only_one = op.sources - first == 1;
    // A reduction without addends is a copy if it has one destination.
    if (only_one && (op.sources != 2 || op.destinations != 1)) return;
    out.add(at, [=](Edit& edit) {
      const ThreadBlock& block = block_of(edit.plan(), at);
      std::vector<Operand> sources = source_list(block, op);
      sources.pop_back();
      edit.set_operands(at, std::move(sources), dest_list(block, op));
      if (!only_one) return;
      edit.op(at).code = Opcode::copy;
      edit.op(at).via = ChannelType::none;
    });
  });
}

void make::duplicate_reduction(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    if (reduces(op)) out.add(at, [=](Edit& edit) { edit.insert_behind(at, op); });
  });
}

void make::drop_data(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    if (moves_data(op)) out.add(at, [=](Edit& edit) { edit.erase(at); });
  });
}

// The thread that handles an element follows from the element's position in the operation. Operations with
// other sizes give the same element to other threads, and only a synchronisation between them orders their
// accesses.
void make::split_operation(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    // A part that posts would post twice.
    if (!moves_data(op) || shape(op.code).has_any(post_roles) || op.group_size) return;
    bool even = true;
    for_each_operand(block, op, [&](const Field&, const Operand& operand) { even &= operand.size % 2 == 0; });
    out.add(at, [=](Edit& edit) {
      if (!even && !edit.cut_chunks()) return;
      const Op whole = block_of(edit.plan(), at).ops[at.op];
      edit.insert_behind(at, whole);
      for (const bool second : {true, false}) {
        const ThreadBlock& in = block_of(edit.plan(), at);
        std::vector<Operand> sources = source_list(in, whole), dests = dest_list(in, whole);
        for (std::vector<Operand>* list : {&sources, &dests}) {
          for (Operand& operand : *list) {
            operand.size /= 2;
            if (second) operand.index += operand.size;
          }
        }
        edit.set_operands({at.rank, at.threadblock, at.op + second}, std::move(sources), std::move(dests));
      }
    });
  });
}

void make::wrong_reduction(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    if (!reduces(op)) return;
    const ReduceOp other = op.reduce_op == ReduceOp::max ? ReduceOp::sum : ReduceOp::max;
    out.add(at, [=](Edit& edit) { edit.op(at).reduce_op = other; });
  });
}

void make::reorder_data(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (!moves_data(op)) return;
    const auto next =
        nearest_behind(block, at.op, [](const Op& behind) { return behind.code != Opcode::nop; });
    if (!next || !moves_data(block.ops[*next])) return;
    out.add(at, [=](Edit& edit) {
      std::vector<Op>& ops = edit.block(at).ops;
      std::swap(ops[at.op], ops[*next]);
    });
  });
}

}  // namespace chorale::mutation
