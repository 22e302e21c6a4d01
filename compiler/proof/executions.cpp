#include "executions.hpp"

#include "../resolve.hpp"

namespace chorale::proof {

std::vector<bool> list_storages(const Plan& plan) {
  if (!plan.inplace) return {false};
  bool touched[2] = {false, false};
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace) {
    for_each_place(plan, gpu, block, op, [&](const Field&, const Operand&, uint32_t, BufferKind buffer) {
      if (buffer != BufferKind::scratch) touched[size_t(buffer)] = true;
    });
  });
  const bool always =
      plan.collective == "allreduce" || plan.collective == "allgather" || plan.collective == "reducescatter";
  if (always || !touched[0] || !touched[1]) return {true};
  return {true, false};
}

}  // namespace chorale::proof
