#include "launch_count.hpp"

#include <fmt/format.h>

#include "executor/world/group.hpp"

namespace chorale {

LaunchCount::LaunchCount(World& world)
    : world_(world),
      mine_(world.group().launches(world.rank())),
      call_(world.group().last_call(world.rank())) {}

uint32_t LaunchCount::proposal() const { return world_.group().executors(world_.rank()) + 1; }

void LaunchCount::number(uint32_t executor) {
  executor_ = executor;
  world_.group().executors(world_.rank()) = executor;
}

void LaunchCount::restart() {
  count_ = 0;
  captured_ = false;
}

world::Launched LaunchCount::launched(uint32_t count) const {
  return {uint16_t(executor_), uint16_t(world_.resets()), count};
}

void LaunchCount::publish(uint32_t count, uint64_t call) {
  call_.store(call, std::memory_order_relaxed);
  mine_.store(launched(count).word(), std::memory_order_release);
}

std::string LaunchCount::ahead() const {
  if (!numbered() || captured_) return "";
  for (int rank = 0; rank < world_.ranks(); ++rank) {
    const auto seen = world::Launched::of(world_.group().launches(rank).load(std::memory_order_relaxed));
    if (!seen.counts_with(launched(0)) || int32_t(seen.count - count_) <= 0) continue;
    return fmt::format(
        "rank {} has launched call {} of this executor, which it had bound before, but rank {} has to "
        "bind it first: a call's plan, bytes, dtype, op and packet form, and on GPUs its buffers "
        "where peers reach them, are new on all ranks or on none",
        rank, count_ + 1, world_.rank());
  }
  return "";
}

}  // namespace chorale
