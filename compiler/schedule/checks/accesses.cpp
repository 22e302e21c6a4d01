#include "accesses.hpp"

namespace chorale::schedule {

std::vector<std::vector<Access>> accesses(const Concrete& made, uint32_t runs) {
  std::vector<std::vector<Access>> by_memory(made.ranks * made.tensors.size());
  for (uint32_t run = 0; run < runs; ++run) {
    for (uint32_t rank = 0; rank < made.ranks; ++rank) {
      for (uint32_t k = 0; k < made.steps[rank].size(); ++k) {
        const Step& step = made.steps[rank][k];
        const auto add = [&](uint32_t owner, const Box& box, bool writes, uint32_t at,
                             const ConcreteTransfer* transfer = nullptr) {
          if (box.bytes)
            by_memory[owner * made.tensors.size() + box.tensor].push_back(
                {{rank, k, run}, owner, &box, writes, at, transfer});
        };
        const uint32_t reads_at = step.kind == StepKind::get ? step.peer : rank;
        const uint32_t writes_at = step.kind == StepKind::put ? step.peer : rank;
        for (const Box& box : step.reads) add(reads_at, box, false, step.at);
        for (const Box& box : step.writes) add(writes_at, box, true, step.at);
        for (const ConcreteTransfer& one : step.transfers) add(rank, one.box, !one.is_send, one.at, &one);
      }
    }
  }
  return by_memory;
}

}  // namespace chorale::schedule
