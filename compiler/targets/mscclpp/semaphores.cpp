// MSCCL++'s executor handles some semaphores wrongly. Its acquire subtracts one and, if there was none left,
// waits until the value is what it was before. With a single acquirer, that value is zero whenever it waits,
// and no one else lowers it again. With two acquirers, one can lower the value before the other has seen it
// raised. Then both wait although the semaphore was released.

#include <map>
#include <utility>

#include "checks.hpp"

namespace chorale::mscclpp {

void shared_semaphores(const Plan& plan, Finder& find) {
  struct First {
    uint32_t block;
    OpPlace at;
  };
  std::map<std::pair<uint32_t, uint32_t>, First> acquirers;  // by rank and semaphore
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (!shape(op.code).has(Role::Acquire)) return;
    std::span<const uint32_t> ids = block.op_ids(op);
    for (size_t k = 0; k < ids.size(); ++k) {
      const auto [entry, fresh] = acquirers.try_emplace({gpu.id, ids[k]}, First{block.id, at});
      const bool twice = std::find(ids.begin(), ids.begin() + k, ids[k]) != ids.begin() + k;
      if (entry->second.block == block.id && !twice) continue;
      find.add(at,
               "semaphore " + number(ids[k]) + " of " + rank_name(gpu.id) + " is acquired " +
                   (twice ? "twice in one operation"
                          : "by thread block " + number(block.id) + " and by thread block " +
                                number(entry->second.block)) +
                   ", but MSCCL++ loses releases with more than 1 acquirer",
               "give each acquirer a semaphore of its own");
    }
  });
}

void semaphore_values(const Plan& plan, Finder& find) {
  for (const Gpu& gpu : plan.gpus) {
    for (size_t id = 0; id < gpu.semaphores.size(); ++id) {
      const int64_t value = gpu.semaphores[id];
      if (value <= int64_t(max_int)) continue;
      find.add_at(path_of("gpus", gpu.id, "semaphores", id, "init_value"),
                  "semaphore " + number(id) + " of " + rank_name(gpu.id) + " begins with " +
                      number(uint64_t(value)) + ", but MSCCL++ reads at most " + number(max_int));
    }
  }
}

}  // namespace chorale::mscclpp
