// This file finds repeated operations. An operation repeats the one before it in its thread block if it is
// the same, both move plain chunks, and they write nothing that they read. The second one then reads the
// sources that the first has read and writes the same value over the first one's result. For example, a
// generator that emits a copy twice makes such a plan.
//
// The threads are not synchronised between the two, so a thread may write a byte that another has written.
// This is a race, but one of equal values. Such a plan behaves exactly as one with only one of the two
// operations. If something is ordered after the first operation, it is ordered by something that the block
// does later: a signal, a barrier or the end of the launch. That is also after the second operation.
// Everything ordered before the first operation is also before the second.
//
// Transfers by a port channel do not count as repeats, because they fill the queue of the proxy. Packets do
// not count, because a later launch may have overwritten their flags. Switch operations do not count either.

#include "repeats.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/finding.hpp"
#include "chorale/repeats.hpp"
#include "compiler/plan/erase_op.hpp"
#include "compiler/plan/resolve.hpp"
#include "compiler/proof/execution/storage.hpp"

namespace chorale {
namespace proof {
namespace {

/// Returns whether the threads of the block move plain chunks and do nothing else.
bool moves_plain_chunks(const Op& op) {
  constexpr uint32_t writes = Shape::bit(Role::Write) | Shape::bit(Role::RemoteWrite);
  constexpr uint32_t all = writes | Shape::bit(Role::Read) | Shape::bit(Role::RemoteRead) |
                           Shape::bit(Role::Via) | Shape::bit(Role::Channels) |
                           Shape::bit(Role::PortChannels) | Shape::bit(Role::Reduce) |
                           Shape::bit(Role::Sliced);
  const Shape& row = shape(op.code);
  return row.has_any(writes) && !row.has_any(~all) && !has_proxy(op.via);
}

bool is_same(const ThreadBlock& block, const Op& one, const Op& other) {
  const auto operands = [&](const Op& op) {
    return std::span(block.operands).subspan(op.first_operand, size_t(op.sources) + op.destinations);
  };
  return one.code == other.code && one.via == other.via && one.reduce_op == other.reduce_op &&
         one.sync == other.sync && one.sources == other.sources && one.group_index == other.group_index &&
         one.group_size == other.group_size && one.extra == other.extra &&
         std::ranges::equal(operands(one), operands(other)) &&
         std::ranges::equal(block.op_ids(one), block.op_ids(other));
}

/// Names chunks [begin, end) of a memory, and whether the operation writes them.
struct Chunks {
  uint32_t space;
  uint64_t begin, end;
  bool written;
};

/// Returns whether an operation writes no chunk that it also names elsewhere.
bool is_idempotent(const Plan& plan, const Storage& storage, const Gpu& gpu, const ThreadBlock& block,
                   const Op& op) {
  std::vector<Chunks> all;
  for_each_place(plan, gpu, block, op,
                 [&](const Field& field, const Operand& operand, uint32_t rank, BufferKind buffer) {
                   const Storage::Place place = storage.place(rank, buffer, false);
                   const uint64_t begin = place.first + operand.index;
                   all.push_back({place.space, begin, begin + operand.size, is_write(field.role)});
                 });
  for (size_t at = 0; at < all.size(); ++at) {
    for (size_t other = 0; other < at; ++other) {
      const Chunks &one = all[at], &two = all[other];
      const bool overlap = one.space == two.space && one.begin < two.end && two.begin < one.end;
      if (overlap && (one.written || two.written)) return false;
    }
  }
  return true;
}

std::vector<OpPlace> list_repeats(const Plan& plan) {
  const Storage storage(plan, true);  // chunks that are disjoint in one memory are so in two
  std::vector<OpPlace> found;
  const Op *before = nullptr, *loop_before = nullptr;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op* loop, OpPlace at) {
    const bool again = at.op && loop == loop_before && moves_plain_chunks(op) && is_same(block, *before, op);
    if (again && is_idempotent(plan, storage, gpu, block, op)) found.push_back(at);
    before = &op;
    loop_before = loop;
  });
  return found;
}

}  // namespace

void WithoutRepeats::put_back(std::vector<Finding>& findings) const {
  const auto move = [this](OpPlace& place) {
    for (const OpPlace& gone : left_out)
      place.op += gone.rank == place.rank && gone.threadblock == place.threadblock && gone.op <= place.op;
  };
  for (Finding& finding : findings) {
    if (finding.diagnostic.at) move(*finding.diagnostic.at);
    for (Note& note : finding.diagnostic.notes)
      if (note.at) move(*note.at);
    for (ProofEvent& event : finding.events) move(event.at);
  }
}

std::optional<WithoutRepeats> leave_out_repeats(const Plan& plan) {
  std::vector<OpPlace> left_out = list_repeats(plan);
  if (left_out.empty()) return {};
  WithoutRepeats without{plan, std::move(left_out)};
  // Later operations are removed first, so that the places of the others stay valid.
  for (auto at = without.left_out.rbegin(); at != without.left_out.rend(); ++at)
    erase_op(without.plan.gpus[at->rank].threadblocks[at->threadblock].ops, at->op);
  return without;
}

}  // namespace proof

Diagnostics find_repeats(const Plan& plan) {
  Diagnostics found;
  for (const OpPlace& at : proof::list_repeats(plan)) {
    Diagnostic& finding = found.emplace_back();
    finding.check = "repeats";
    finding.at = at;
    finding.text =
        "this writes the same value to the same bytes as the operation before it: it is superfluous, and the "
        "race is harmless";
    finding.help = "remove it";
  }
  return found;
}

}  // namespace chorale
