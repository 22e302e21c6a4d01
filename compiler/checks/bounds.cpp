// This check requires every operand to be inside its buffer. A remote operand must be inside the peer's
// buffer, and a switch operand inside the buffer of every member. If one operand is moved into another
// element by element, both must have equal sizes.

#include <algorithm>

#include "chorale/checks.hpp"
#include "chorale/limits.hpp"
#include "compiler/plan/report.hpp"
#include "compiler/plan/resolve.hpp"
#include "compiler/plan/roles.hpp"

namespace chorale {
namespace {

std::string range(const Operand& operand) {
  return "[" + number(operand.index) + ":" +
         (operand.size > UINT64_MAX - operand.index ? "beyond 2^64" : number(operand.index + operand.size)) +
         "]";
}

class Bounds {
 public:
  Bounds(const Plan& plan, Report& report) : plan_(plan), report_(report) {}

  void operation(const Gpu& gpu, const ThreadBlock& block, const Op& op, OpPlace at) {
    at_ = at;
    op_ = &op;
    block_ = &block;
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      if (!operand.size) {
        report_.add(at_, std::string(field.name) + " has 0 chunks, expected at least 1",
                    "remove the operation if it moves no data", operand_path(block, op, operand) + "/size");
      }
      if (is_remote(field.role)) {
        if (const RemoteBuffer* buffer = remote_buffer(gpu, block, op.via, operand.ref)) {
          inside(field, operand, buffer->rank, buffer->buffer);
        }
      } else if (is_switched(field.role)) {
        const SwitchGroup group = switch_group(gpu, block, operand.ref);
        if (!group.ranks) return;
        // Only the first member that is too small is reported, because the others have the same cause.
        for (const uint32_t rank : *group.ranks) {
          if (!inside(field, operand, rank, group.buffer)) return;
        }
      } else if (operand.ref < std::size(buffer_names)) {
        inside(field, operand, gpu.id, BufferKind(operand.ref));
      }
    });
    sizes();
  }

 private:
  bool inside(const Field& field, const Operand& operand, uint32_t rank, BufferKind buffer) {
    if (rank >= plan_.gpus.size()) return true;
    const uint64_t chunks = plan_.gpus[rank].chunks[size_t(buffer)];
    if (operand.index <= chunks && operand.size <= chunks - operand.index) return true;
    const std::string name(buffer_names[size_t(buffer)]);
    report_.add(at_,
                std::string(field.name) + " is " + name + range(operand) + ", but the " + name + " of " +
                    rank_name(rank) + " has " + count(chunks, "chunk"),
                {}, operand_path(*block_, *op_, operand));
    return false;
  }

  void sizes() {
    const Shape& row = shape(op_->code);
    const std::span<const Operand> sources = block_->sources(*op_), dests = block_->dests(*op_);
    if (sources.empty() || dests.empty()) return;
    const bool pairs =
        row.sources.size() == 1 && row.dests.size() == 1 && row.sources[0].many && row.dests[0].many;
    if (pairs) {
      for (size_t k = 0; k < std::min(sources.size(), dests.size()); ++k) {
        equal(*row.field(false, k), sources[k], *row.field(true, k), dests[k]);
      }
      return;
    }
    for (size_t k = 1; k < sources.size(); ++k)
      equal(*row.field(false, 0), sources[0], *row.field(false, k), sources[k]);
    for (size_t k = 0; k < dests.size(); ++k)
      equal(*row.field(false, 0), sources[0], *row.field(true, k), dests[k]);
  }

  void equal(const Field& left, const Operand& one, const Field& right, const Operand& other) {
    if (one.size == other.size || !one.size || !other.size) return;  // 0 was reported already
    report_.add(at_,
                std::string(left.name) + " has " + count(one.size, "chunk") + ", but " +
                    std::string(right.name) + " has " + number(other.size),
                {}, operand_path(*block_, *op_, other) + "/size");
  }

  const Plan& plan_;
  Report& report_;
  OpPlace at_;
  const ThreadBlock* block_ = nullptr;
  const Op* op_ = nullptr;
};

/// Reports a plan that is larger than the executor's records, or other readers of plans, can hold.
void find_unaddressable(const Plan& plan, Report& report) {
  if (plan.ranks() > max_ranks)
    report.add_at("/gpus",
                  "the plan has " + count(plan.ranks(), "rank") + ", expected at most " + number(max_ranks));
  for (const Gpu& gpu : plan.gpus) {
    if (gpu.threadblocks.size() > max_blocks) {
      report.add_at(path_of("gpus", gpu.id, "threadblocks"),
                    rank_name(gpu.id) + " has " + count(gpu.threadblocks.size(), "thread block") +
                        ", expected at most " + number(max_blocks));
    }
    for (size_t buffer = 0; buffer < std::size(buffer_names); ++buffer) {
      if (gpu.chunks[buffer] <= max_chunks) continue;
      report.add_at(path_of("gpus", gpu.id, chunks_key(buffer)),
                    "the " + std::string(buffer_names[buffer]) + " of " + rank_name(gpu.id) + " has " +
                        count(gpu.chunks[buffer], "chunk") + ", expected at most " + number(max_chunks),
                    "make the chunks larger: readers of plans hold their numbers in 32 bits");
    }
  }
}

}  // namespace

void pass::bounds(const Plan& plan, Diagnostics& out) {
  Report report("bounds", out);
  find_unaddressable(plan, report);
  Bounds bounds(plan, report);
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (op.sources + op.destinations != 0) bounds.operation(gpu, block, op, at);
  });
}

}  // namespace chorale
