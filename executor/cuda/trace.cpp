#include "trace.hpp"

#include <algorithm>
#include <map>

#include "error.hpp"

namespace chorale::cuda {

LaunchTrace::LaunchTrace(size_t blocks, uint32_t most_operations, uint32_t launches) : blocks_(blocks) {
  trace_.per_launch = most_operations + 1;
  trace_.per_block = trace_.per_launch * launches;
  memory_ = DeviceMemory(blocks * trace_.per_block * sizeof(TraceEntry), "a trace");
  trace_.entries = reinterpret_cast<TraceEntry*>(memory_.data());
}

void LaunchTrace::add_to(std::vector<TraceSpan>& spans, const Plan& plan, uint32_t rank) const {
  check(cudaDeviceSynchronize(), "the end of what is traced");
  const size_t per_block = trace_.per_block;
  std::vector<TraceEntry> entries(blocks_ * per_block);
  check(
      cudaMemcpy(entries.data(), memory_.data(), entries.size() * sizeof(TraceEntry), cudaMemcpyDeviceToHost),
      "a trace");
  for (size_t block = 0; block < blocks_; ++block) {
    const ThreadBlock& of = plan.gpus[rank].threadblocks[block];
    // An operation ends where the next one begins; pipelines may have left their body's times out of order.
    std::map<uint32_t, std::vector<TraceEntry>> launches;
    for (size_t at = 0; at < per_block; ++at) {
      const TraceEntry& entry = entries[block * per_block + at];
      if (entry.ns != 0) launches[entry.epoch].push_back(entry);
    }
    for (auto& [epoch, seen] : launches) {
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

}  // namespace chorale::cuda
