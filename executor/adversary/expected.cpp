#include "expected.hpp"

#include <algorithm>

#include "chorale/combine.hpp"
#include "chorale/splitmix64.hpp"
#include "chorale/storage.hpp"

namespace chorale::adversary {

uint64_t mix(uint64_t x) { return mix64(x + splitmix64_step); }

/// The value is odd, so that a product of values loses no information, just as a sum does not.
uint64_t input_value(uint32_t rank, uint64_t cell, uint32_t launch) {
  return mix(mix(uint64_t(rank) << 32 | launch) + cell) | 1;
}

Expected::Expected(const Plan& plan, const Program& program)
    : outcome_(plan), known_(outcome_.is_known()), ranks_(plan.ranks()) {
  if (outcome_.leaves_sender_open()) {
    const bool one_storage = !program.memory.empty() && program.memory[0].one_storage;
    receivers_ = chorale::receivers(plan, one_storage);
  }
  segment_ = std::max<uint64_t>(1, program.layout.segment_bytes / program.arena.cell_bytes());
  bool any = false;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.code != Code::move || instruction.sources < 2) continue;
    if (any && instruction.op != op_)
      known_ = false;  // the plan does not declare which outputs use which operator
    op_ = instruction.op;
    any = true;
  }
}

std::optional<uint64_t> Expected::value(uint32_t rank, uint64_t cell, uint32_t launch,
                                        uint32_t sender) const {
  std::optional<uint64_t> value;
  if (!known_) return value;
  outcome_.for_each(rank, cell / segment_, sender, [&](const Contribution& from) {
    const uint64_t one = input_value(from.rank, from.chunk * segment_ + cell % segment_, launch);
    value = value ? reference::combine(op_, *value, one) : one;
  });
  return value;
}

}  // namespace chorale::adversary
