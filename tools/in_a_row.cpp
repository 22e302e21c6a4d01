#include "tools/in_a_row.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "chorale/splitmix64.hpp"

namespace chorale::tools {
namespace {

constexpr unsigned most_in_a_group = 4;
constexpr unsigned late_one_in = 8, latest_us = 500;

/// Aligns the memory of each launch for the vector accesses that move peers' data. So copies are as fast as
/// elsewhere.
constexpr uint64_t alignment = 256;

uint64_t rounded(uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

LaunchesInARow::LaunchesInARow(Device& device, Executor& executor, const Plan& plan,
                               const Arguments& arguments, const Oracle& oracle, uint32_t rank,
                               const Buffers& buffers, unsigned launches)
    : device_(device), executor_(executor), plan_(plan), arguments_(arguments), buffers_(buffers) {
  const MessageSizes& sizes = buffers.sizes;
  const uint64_t first_room = rounded(buffers.in_place ? std::max(sizes.input, sizes.output) + guard_bytes
                                                       : std::max<uint64_t>(sizes.input, 1));
  const uint64_t room = first_room + (buffers.in_place ? 0 : rounded(sizes.output + guard_bytes));
  std::byte* const memory = device.allocate(room * launches);
  for (unsigned launch = 0; launch < launches; ++launch) {
    std::byte* const own = memory + launch * room;
    own_.push_back(place(own, own + first_room, plan.collective, buffers.in_place, rank, sizes));
    checks_.emplace_back(device, oracle, rank, arguments.dtype, own_.back());
  }
  SplitMix64 draw(mix64(rank));
  for (unsigned at = 0; at < launches;) {
    Group group;
    group.first = at;
    group.launches = std::min(1 + unsigned(draw() % most_in_a_group), launches - at);
    if (draw() % 2) group.graph = device.capture([&] { launch(group); });
    if (draw() % late_one_in == 0) group.late_us = unsigned(draw() % latest_us);
    at += group.launches;
    groups_.push_back(std::move(group));
  }
}

void LaunchesInARow::fill(uint64_t turn) {
  for (CheckRun& check : checks_) check.fill(turn++);
}

void LaunchesInARow::enqueue() {
  for (const Group& group : groups_) {
    if (group.late_us) std::this_thread::sleep_for(std::chrono::microseconds(group.late_us));
    group.graph ? group.graph->launch() : launch(group);
  }
}

Findings LaunchesInARow::compare(uint64_t turn) {
  for (CheckRun& check : checks_) {
    Findings found = check.compare(turn++);
    if (!found.what.empty()) return found;
  }
  return {};
}

void LaunchesInARow::launch(const Group& group) {
  for (unsigned launch = group.first; launch < group.first + group.launches; ++launch) {
    copy(own_[launch], buffers_);
    executor_.execute(plan_, arguments_, device_.stream());
    copy(buffers_, own_[launch]);
  }
}

void LaunchesInARow::copy(const Buffers& from, const Buffers& to) {
  if (from.in_place) {
    const uint64_t bytes = std::max(from.sizes.input, from.sizes.output) + guard_bytes;
    return device_.copy(to.end + guard_bytes - bytes, from.end + guard_bytes - bytes, bytes);
  }
  device_.copy(to.in, from.in, from.sizes.input);
  device_.copy(to.out, from.out, from.sizes.output + guard_bytes);
}

}  // namespace chorale::tools
