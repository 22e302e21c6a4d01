#include "memory.hpp"

#include <fmt/format.h>

#include "executor/world/collective_try.hpp"

namespace chorale::schedule_run {
namespace {

constexpr uint64_t line = 128;  ///< bytes of a flag, so that waits do not disturb each other

/// Finds which tensors at least one rank has given, and which at least one rank has not. Collective.
struct Given {
  std::vector<bool> by_some, missed_by_some;

  explicit Given(const Bound& bound) {
    const auto& tensors = bound.unrolled.concrete.tensors;
    std::vector<std::byte> mine;
    for (const schedule::ConcreteTensor& tensor : tensors)
      mine.push_back(std::byte(bound.given(tensor) != nullptr));
    by_some.resize(mine.size());
    missed_by_some.resize(mine.size());
    for (const auto& theirs : bound.world.allgather(mine)) {
      for (size_t tensor = 0; tensor < theirs.size(); ++tensor)
        (theirs[tensor] == std::byte{1} ? by_some : missed_by_some)[tensor] = true;
    }
  }
};

}  // namespace

CudaMemory::CudaMemory(const Bound& bound, cuda::Imports& imports, cuda::Pool& pool)
    : window_(Window::create(bound.world, line * bound.unrolled.flags_per_rank)) {
  world::collective_try(bound.world, [&] { place_flags(bound); });
  place_tensors(bound, imports, pool);
}

void CudaMemory::place_flags(const Bound& bound) {
  const Unrolled& of = bound.unrolled;
  for (uint32_t rank = 0; rank < of.concrete.ranks; ++rank) {
    mappings_.emplace_back();
    if (window_.at(int(rank))) mappings_.back() = {window_.at(int(rank)), window_.bytes(int(rank))};
  }
  const uint32_t self = bound.rank();
  for (size_t flag = 0; flag < of.flags.size(); ++flag) {
    const FlagUse& use = of.flags[flag];
    const bool ours = use.poster == self || use.taker == self;
    uint32_t* const host =
        reinterpret_cast<uint32_t*>(window_.at(int(use.taker)) + line * of.place_of_flag[flag]);
    host_flags_.push_back(host);
    places_.flags.push_back(ours ? mappings_[use.taker].device(host) : nullptr);
  }
}

void CudaMemory::place_tensors(const Bound& bound, cuda::Imports& imports, cuda::Pool& pool) {
  const Unrolled& of = bound.unrolled;
  const auto& tensors = of.concrete.tensors;
  const uint32_t self = bound.rank();
  const Given given(bound);
  places_.tensors.assign(of.concrete.ranks, std::vector<char*>(tensors.size()));
  for (uint32_t tensor = 0; tensor < tensors.size(); ++tensor) {
    const uint64_t bytes = tensors[tensor].bytes;
    char* const mine = static_cast<char*>(bound.given(tensors[tensor]));
    if (bytes == 0) continue;
    if (!of.reached[tensor]) {
      world::collective_try(bound.world, [&] {
        cuda::require_readable(mine, fmt::format("buffer of '{}'", tensors[tensor].name),
                               imports.devices()[self].ordinal);
        if (!mine) own_.emplace_back(bytes, fmt::format("{} bytes of '{}'", bytes, tensors[tensor].name));
      });
      places_.tensors[self][tensor] = mine ? mine : own_.back().data();
      continue;
    }
    cuda::Pool::Block room;
    cuda::PeerMemory theirs;
    if (given.missed_by_some[tensor]) room = pool.take(bytes);
    if (given.by_some[tensor])
      theirs = cuda::PeerMemory::exchange(bound.world, imports, mine, mine ? bytes : 0);
    for (uint32_t rank = 0; rank < of.concrete.ranks; ++rank) {
      char* const gave = given.by_some[tensor] ? theirs.at(int(rank)) : nullptr;
      places_.tensors[rank][tensor] = gave ? gave : room.at(int(rank));
    }
    shared_.push_back(std::move(room));
    peers_.push_back(std::move(theirs));
  }
}

}  // namespace chorale::schedule_run
