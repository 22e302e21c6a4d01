// This file checks how much one operation and one thread block contain.

#include "checks.hpp"

namespace chorale::mscclpp {

void block_operations(const Plan& plan, Finder& find) {
  for (uint32_t rank = 0; rank < plan.gpus.size(); ++rank) {
    const std::vector<ThreadBlock>& blocks = plan.gpus[rank].threadblocks;
    for (uint32_t position = 0; position < blocks.size(); ++position) {
      const size_t ops = blocks[position].ops.size();
      if (ops <= max_block_operations) continue;
      const OpPlace first_too_many{rank, position, max_block_operations};
      find.add(first_too_many,
               block_name(first_too_many) + " has " + count(ops, "operation") +
                   ", but MSCCL++ runs at most " + number(max_block_operations),
               "spread them over more thread blocks");
    }
  }
}

void operands(const Plan& plan, Finder& find) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    const auto compare = [&](size_t found, const char* noun, const char* key) {
      if (found <= max_operands) return;
      find.add(at,
               name_of(op) + " has " + count(found, noun) + ", but MSCCL++ holds at most " +
                   number(max_operands) + " per operation",
               {}, path_of(key, max_operands).substr(1));
    };
    compare(op.sources, "source", "src_buff");
    compare(op.destinations, "destination", "dst_buff");
  });
}

namespace {

void compare_ids(const Plan& plan, IdKind kind, const char* noun, uint32_t most, Finder& find) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    if (op.ids <= most || id_kind(shape(op.code), op.via) != kind) return;
    find.add(at,
             name_of(op) + " has " + count(op.ids, noun) + ", but MSCCL++ holds at most " + number(most) +
                 " per operation",
             {}, path_of(std::string(noun) + "_ids", most).substr(1));
  });
}

}  // namespace

void channels(const Plan& plan, Finder& find) {
  compare_ids(plan, IdKind::channel, "channel", max_channels, find);
}

void semaphores(const Plan& plan, Finder& find) {
  compare_ids(plan, IdKind::semaphore, "semaphore", max_semaphores, find);
}

}  // namespace chorale::mscclpp
