#include "expected.hpp"

#include <algorithm>

#include "chorale/splitmix64.hpp"
#include "chorale/storage.hpp"

namespace chorale::adversary {

uint64_t mix(uint64_t x) { return mix64(x + splitmix64_step); }

/// The value is odd, so that a product says as much as a sum.
uint64_t input_value(uint32_t rank, uint64_t cell, uint32_t launch) {
  return mix(mix(uint64_t(rank) << 32 | launch) + cell) | 1;
}

uint64_t combine(ReduceOp op, uint64_t left, uint64_t right) {
  switch (op) {
    case ReduceOp::min:
      return std::min(left, right);
    case ReduceOp::max:
      return std::max(left, right);
    case ReduceOp::prod:
      return left * right;
    case ReduceOp::sum:
    case ReduceOp::avg:
      break;
  }
  return left + right;
}

Expected::Expected(const Plan& plan, const Program& program)
    : ranks_(plan.ranks()), root_(plan.extension.root) {
  if (!plan.extension.post.empty()) {
    kind_ = Kind::post;
    post_ = plan.extension.post;
  } else if (plan.collective == "allreduce") {
    kind_ = Kind::all;
  } else if (plan.collective == "reducescatter") {
    kind_ = Kind::part_of_all;
  } else if (plan.collective == "allgather") {
    kind_ = Kind::each;
  } else if (plan.collective == "alltoall") {
    kind_ = Kind::part_of_each;
  } else if (plan.collective == "broadcast") {
    kind_ = Kind::root;
  } else if (plan.collective == "sendrecv") {
    kind_ = Kind::sender;
    const bool one_storage = !program.memory.empty() && program.memory[0].one_storage;
    receivers_ = chorale::receivers(plan, one_storage);
  }
  segment_ = std::max<uint64_t>(1, program.layout.segment_bytes / program.arena.cell_bytes());
  bool any = false;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.code != Code::move || instruction.sources < 2) continue;
    if (any && instruction.op != op_)
      kind_ = Kind::unknown;  // the plan does not say which outputs use which operator
    op_ = instruction.op;
    any = true;
  }
}

uint64_t Expected::all(uint64_t cell, uint32_t launch) const {
  uint64_t value = input_value(0, cell, launch);
  for (uint32_t rank = 1; rank < ranks_; ++rank) value = combine(op_, value, input_value(rank, cell, launch));
  return value;
}

std::optional<uint64_t> Expected::value(uint32_t rank, uint64_t cell, uint32_t launch,
                                        uint32_t sender) const {
  const uint64_t segment = cell / segment_, inside = cell % segment_;
  switch (kind_) {
    case Kind::unknown:
      break;
    case Kind::all:
      return all(cell, launch);
    case Kind::part_of_all:
      return all(rank * segment_ + cell, launch);
    case Kind::each:
      return input_value(uint32_t(segment), inside, launch);
    case Kind::part_of_each:
      return input_value(uint32_t(segment), rank * segment_ + inside, launch);
    case Kind::root:
      return input_value(root_, cell, launch);
    case Kind::sender:
      return input_value(sender, cell, launch);
    case Kind::post: {
      if (rank >= post_.size() || segment >= post_[rank].size() || post_[rank][segment].empty()) break;
      std::optional<uint64_t> value;
      for (const Contribution& from : post_[rank][segment]) {
        const uint64_t one = input_value(from.rank, from.chunk * segment_ + inside, launch);
        value = value ? combine(op_, *value, one) : one;
      }
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace chorale::adversary
