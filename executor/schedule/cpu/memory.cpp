#include "memory.hpp"

#include <cstring>

namespace chorale::schedule_run {
namespace {

constexpr uint64_t line = 128;  ///< each flag has its own cache line, so that waits do not disturb each other

uint64_t up(uint64_t bytes) { return (bytes + line - 1) / line * line; }

/// Holds the layout of a window. It is the same on all ranks, whichever buffers each caller gave.
struct Parts {
  std::vector<uint64_t> tensors;  ///< offsets
  uint64_t bytes;

  explicit Parts(const Unrolled& of) : bytes(line * of.flags_per_rank) {
    for (const schedule::ConcreteTensor& tensor : of.concrete.tensors) {
      tensors.push_back(bytes);
      bytes += up(tensor.bytes);
    }
  }
};

/// Returns the address of each tensor on each rank of this process. Collective.
std::vector<std::vector<char*>> exchange_pointers(World& world, const std::vector<char*>& mine) {
  std::vector<std::vector<char*>> all;
  for (const auto& bytes : world.allgather(std::as_bytes(std::span(mine)))) {
    std::vector<char*>& theirs = all.emplace_back(mine.size());
    if (!bytes.empty()) std::memcpy(theirs.data(), bytes.data(), bytes.size());
  }
  return all;
}

}  // namespace

CpuMemory::CpuMemory(const Bound& bound) : window_(Window::create(bound.world, Parts(bound.unrolled).bytes)) {
  const Unrolled& of = bound.unrolled;
  const Parts parts(of);
  const uint32_t rank = bound.rank();
  const auto in_window = [&](uint32_t of_rank, uint64_t offset) {
    std::byte* const base = window_.at(int(of_rank));
    return base ? reinterpret_cast<char*>(base) + offset : nullptr;
  };
  for (size_t flag = 0; flag < of.flags.size(); ++flag)
    places_.flags.push_back(
        reinterpret_cast<uint32_t*>(in_window(of.flags[flag].taker, line * of.place_of_flag[flag])));

  const auto& tensors = of.concrete.tensors;
  const bool local = bound.world.local();
  std::vector<char*> mine;
  for (uint32_t tensor = 0; tensor < tensors.size(); ++tensor) {
    char* const given = static_cast<char*>(bound.given(tensors[tensor]));
    char* const room = in_window(rank, parts.tensors[tensor]);
    const bool staged = given && !local && of.reached[tensor];
    mine.push_back(given && !staged ? given : room);
    if (!staged || tensors[tensor].bytes == 0) continue;
    before_.push_back({room, given, tensors[tensor].bytes});
    if (tensors[tensor].role == schedule::Role::out) after_.push_back({given, room, tensors[tensor].bytes});
  }
  if (local) {
    places_.tensors = exchange_pointers(bound.world, mine);
    return;
  }
  for (uint32_t peer = 0; peer < of.concrete.ranks; ++peer) {
    std::vector<char*>& places = places_.tensors.emplace_back(mine);
    if (peer == rank) continue;
    for (uint32_t tensor = 0; tensor < tensors.size(); ++tensor)
      places[tensor] = of.reached[tensor] ? in_window(peer, parts.tensors[tensor]) : nullptr;
  }
}

}  // namespace chorale::schedule_run
