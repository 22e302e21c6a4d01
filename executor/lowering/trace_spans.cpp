#include "trace_spans.hpp"

#include <algorithm>
#include <map>

namespace chorale::lowering {

Trace trace_of(const BoundImage& image, uint32_t launches) {
  uint32_t most = 0;
  for (const image::Block& block : image.blocks) most = std::max(most, block.n);
  return {nullptr, launches, most + 1};
}

void add_spans(std::vector<TraceSpan>& spans, const Trace& trace, std::span<const TraceEntry> entries,
               const Plan& plan, uint32_t rank) {
  const size_t blocks = entries.size() / trace.per_block();
  for (size_t block = 0; block < blocks; ++block) {
    const ThreadBlock& of = plan.gpus[rank].threadblocks[block];
    std::map<uint32_t, std::vector<TraceEntry>> launches;
    for (const TraceEntry& entry : entries.subspan(block * trace.per_block(), trace.per_block())) {
      if (entry.ns != 0) launches[entry.epoch].push_back(entry);
    }
    for (auto& [epoch, seen] : launches) {
      // Pipelines may have recorded the times of their body out of order.
      std::stable_sort(seen.begin(), seen.end(),
                       [](const TraceEntry& a, const TraceEntry& b) { return a.ns < b.ns; });
      for (size_t at = 0; at + 1 < seen.size(); ++at) {
        if (seen[at].op >= of.ops.size()) continue;
        const Op& op = of.ops[seen[at].op];
        spans.push_back({plan.name, rank, uint32_t(block), seen[at].op, info(op.code).name, plan.line_of(op),
                         epoch, seen[at].ns, seen[at + 1].ns});
      }
    }
  }
}

}  // namespace chorale::lowering
