#include "launch_count.hpp"

#include <fmt/format.h>

#include "world/group.hpp"

namespace chorale {

LaunchCount::LaunchCount(World& world) : world_(world), mine_(world.group().launches(world.rank())) {}

uint32_t LaunchCount::proposal() const { return world_.group().executors(world_.rank()) + 1; }

void LaunchCount::number(uint32_t executor) {
  executor_ = executor;
  world_.group().executors(world_.rank()) = executor;
}

void LaunchCount::restart() {
  count_ = 0;
  captured_ = false;
}

/// Whose count it is, and of which life of the world: 16 bits each.
uint64_t LaunchCount::word(uint32_t count) const {
  return uint64_t(executor_ & 0xffff) << 48 | (world_.resets() & 0xffff) << 32 | count;
}

void LaunchCount::publish(uint32_t count) { mine_.store(word(count), std::memory_order_relaxed); }

std::string LaunchCount::ahead() const {
  if (!numbered() || captured_) return "";
  for (int rank = 0; rank < world_.ranks(); ++rank) {
    const uint64_t seen = world_.group().launches(rank).load(std::memory_order_relaxed);
    if (seen >> 32 != word(0) >> 32 || int32_t(uint32_t(seen) - count_) <= 0) continue;
    return fmt::format(
        "rank {} has launched call {} of this executor, which it had bound before, but rank {} has to "
        "bind it first: a call's plan, bytes, dtype, op and packet form, and on GPUs its buffers "
        "where peers reach them, are new on all ranks or on none",
        rank, count_ + 1, world_.rank());
  }
  return "";
}

}  // namespace chorale
