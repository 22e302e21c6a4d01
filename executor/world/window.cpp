#include "chorale/window.hpp"

#include <fmt/format.h>

#include <vector>

#include "collective_try.hpp"
#include "executor/system/available_memory.hpp"
#include "executor/system/host_pages.hpp"
#include "executor/system/shared_memory.hpp"
#include "group.hpp"
#include "steps.hpp"

namespace chorale {

/// Holds one rank's view of the shares of all ranks. In a local world a share is reference-counted, so that
/// it stays valid for peers in any order of destruction.
struct Window::Maps {
  struct Share {
    std::byte* data = nullptr;
    uint64_t bytes = 0;
    std::shared_ptr<void> keep;
  };
  std::vector<Share> shares;  // by rank
};

namespace {

using world::bytes_of;
using world::collective_try;
using world::read_as;

std::shared_ptr<std::byte> allocate(uint64_t bytes) {
  auto memory = zeroed_pages(bytes);
  if (!memory) {
    throw RunError(
        RunError::Reason::resources,
        fmt::format("cannot allocate {} bytes of memory for a window; use smaller buffers", bytes));
  }
  return memory;
}

}  // namespace

Window::Window(std::shared_ptr<Maps> maps, int rank) : maps_(std::move(maps)), rank_(rank) {}
Window::Window(Window&&) noexcept = default;
Window& Window::operator=(Window&&) noexcept = default;
Window::~Window() = default;

Window Window::create(World& world, uint64_t bytes) { return make(world, bytes, true); }

Window Window::create(World& world, std::span<const uint64_t> bytes) {
  const auto host = [&](size_t rank) { return world.group().host(int(rank)); };
  const size_t mine = size_t(world.rank());
  uint64_t all = 0, here = 0;
  bool first = true;  // of the ranks of this host; it asks for all of them
  for (size_t rank = 0; rank < bytes.size(); ++rank) {
    all += bytes[rank];
    if (host(rank) != host(mine)) continue;
    here += bytes[rank];
    first = first && rank >= mine;
  }
  // Peers must not take their memory while this rank asks how much there is.
  if (all >= system::least_required) {
    collective_try(world, [&] {
      if (first) system::require_memory(here, "the window of all ranks of this host");
    });
  }
  return make(world, bytes[mine], false);
}

Window Window::make(World& world, uint64_t bytes, bool require_memory) {
  auto maps = std::make_shared<Maps>();
  maps->shares.resize(world.ranks());
  Maps::Share& mine = maps->shares[world.rank()];
  mine.bytes = bytes;

  if (world.local()) {
    collective_try(world, [&] {
      if (bytes == 0) return;
      if (require_memory) system::require_memory(bytes, "a window");
      const auto memory = allocate(bytes);
      mine.data = memory.get();
      mine.keep = memory;
    });
    world::Group& group = world.group();
    group.show(world.rank(), std::make_shared<const Maps::Share>(mine));
    group.barrier(world.rank(), world::Collective::window);
    for (int rank = 0; rank < world.ranks(); ++rank) {
      if (rank != world.rank())
        maps->shares[rank] = *static_cast<const Maps::Share*>(group.shown(rank).get());
    }
    // This rank must show its share until all ranks have copied it. If the world stops here, it shows the
    // share until it shows another.
    group.barrier(world.rank(), world::Collective::window);
    group.show(world.rank(), nullptr);
    return Window(std::move(maps), world.rank());
  }

  // A rank of another host cannot be mapped, so it gets a size here and no address.
  system::Descriptor memory;
  system::SharedMemory offer;
  const auto map = [](Maps::Share& share, const system::Descriptor& from, uint64_t size) {
    auto mapping = std::make_shared<system::Mapping>(from, size);
    share = {mapping->data(), size, mapping};
  };
  collective_try(world, [&] {
    world::at_step(world::CollectiveStep::window);
    if (bytes == 0) return;
    memory = system::create_shared(bytes);
    map(mine, memory, bytes);
    offer = system::offer_of(memory);
  });
  const auto all = world.group().allgather(world.rank(), bytes_of(offer), world::Collective::window);
  collective_try(world, [&] {
    for (int rank = 0; rank < world.ranks(); ++rank) {
      const auto other = read_as<system::SharedMemory>(all[rank]);
      if (rank == world.rank() || other.bytes == 0) continue;
      if (world.group().host(rank) != world.group().host(world.rank())) {
        maps->shares[rank].bytes = other.bytes;
        continue;
      }
      map(maps->shares[rank], system::open_offered(other), other.bytes);
    }
  });
  // collective_try() is a barrier, so all ranks have opened the memory, and `memory` may close.
  return Window(std::move(maps), world.rank());
}

std::byte* Window::at(int rank) const { return maps_->shares.at(rank).data; }
uint64_t Window::bytes(int rank) const { return maps_->shares.at(rank).bytes; }
int Window::ranks() const { return int(maps_->shares.size()); }

}  // namespace chorale
