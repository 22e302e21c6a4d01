#include "pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

#include "allocation.hpp"
#include "executor/cuda/device/error.hpp"
#include "executor/system/round_up.hpp"
#include "executor/world/collective_try.hpp"

namespace chorale::cuda {
namespace {

using world::collective_try;

/// Holds the place that a block will have. Ranks compare it byte by byte.
struct Place {
  uint64_t bytes = 0;  ///< the requested bytes
  uint64_t slab = 0;   ///< a slab's position; the number of slabs means a new one
  uint64_t offset = 0;
};

struct Slab {
  uint64_t bytes = 0;
  std::map<uint64_t, uint64_t> free;  // offset -> bytes; no two are adjacent
  Allocation memory;
  PeerMemory mapped;  // destroyed before `memory`

  void take(uint64_t offset, uint64_t size) {
    const auto range = free.find(offset);
    const uint64_t rest = range->second - size;
    free.erase(range);
    if (rest) free.emplace(offset + size, rest);
  }

  void give_back(uint64_t offset, uint64_t size) {
    auto next = free.lower_bound(offset);
    if (next != free.end() && next->first == offset + size) {
      size += next->second;
      next = free.erase(next);
    }
    if (next != free.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += size;
        return;
      }
    }
    free.emplace(offset, size);
  }
};

}  // namespace

struct Pool::State {
  explicit State(Imports& of) : imports(of) {}

  Imports& imports;
  std::mutex mutex;  // other threads may give blocks back
  std::vector<Slab> slabs;
  cudaStream_t stream = nullptr;

  ~State() {
    if (stream) check_quietly(cudaStreamDestroy(stream), "cudaStreamDestroy");
  }

  /// Finds the first free place that is large enough. Ranks with the same free lists find the same place.
  Place find(uint64_t bytes) {
    const std::lock_guard lock(mutex);
    const uint64_t size = round_up(bytes, alignment);
    for (size_t slab = 0; slab < slabs.size(); ++slab) {
      for (const auto& [offset, free] : slabs[slab].free) {
        if (free >= size) return {bytes, slab, offset};
      }
    }
    return {bytes, slabs.size(), 0};
  }

  void add_slab(World& world, uint64_t bytes) {
    Slab slab;
    slab.bytes = std::max(slab_bytes, round_up(bytes, 2 << 20));
    slab.free.emplace(0, slab.bytes);
    collective_try(world, [&] { slab.memory = Allocation(slab.bytes); });
    slab.mapped = PeerMemory::exchange(world, imports, slab.memory.data(), slab.bytes);
    const std::lock_guard lock(mutex);
    slabs.push_back(std::move(slab));
  }

  /// Zeroes memory on a separate stream, so that it waits for no other work.
  void clear(char* memory, uint64_t bytes) {
    if (!stream)
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check(cudaMemsetAsync(memory, 0, bytes, stream),
          fmt::format("cudaMemsetAsync of {} bytes of scratch", bytes));
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize after clearing scratch");
  }
};

namespace {

/// Throws on all ranks if the places differ. Collective.
void compare(World& world, const Place& mine) {
  const auto all = world.allgather(world::bytes_of(mine));
  const Place first = world::read_as<Place>(all[0]);
  for (int rank = 1; rank < world.ranks(); ++rank) {
    const Place place = world::read_as<Place>(all[rank]);
    if (place.bytes != first.bytes) {
      throw RunError(
          RunError::Reason::mismatch,
          fmt::format("rank {} takes {} bytes of scratch, rank 0 takes {}: all ranks must take the same",
                      rank, place.bytes, first.bytes));
    }
    if (place.slab != first.slab || place.offset != first.offset) {
      throw RunError(
          RunError::Reason::mismatch,
          fmt::format("rank {} would place {} bytes of scratch at byte {} of slab {}, rank 0 at byte {} "
                      "of slab {}: the ranks have not given back the same blocks",
                      rank, place.bytes, place.offset, place.slab, first.offset, first.slab));
    }
  }
}

}  // namespace

Pool::Pool(World& world, Imports& imports) : world_(&world), state_(std::make_shared<State>(imports)) {}
Pool::~Pool() = default;
Pool::Pool(Pool&&) noexcept = default;
Pool& Pool::operator=(Pool&&) noexcept = default;

Pool::Block Pool::take(uint64_t bytes) {
  World& world = *world_;
  const OutsideCapture outside;
  const CurrentDevice device(state_->imports.devices()[world.rank()].ordinal);
  const Place place = state_->find(bytes);
  compare(world, place);
  Block block;
  if (bytes == 0) return block;
  if (place.slab == state_->slabs.size()) state_->add_slab(world, bytes);
  {
    const std::lock_guard lock(state_->mutex);
    state_->slabs[place.slab].take(place.offset, round_up(bytes, alignment));
  }
  block.state_ = state_;
  block.slab_ = place.slab;
  block.offset_ = place.offset;
  block.bytes_ = bytes;
  collective_try(world, [&] { state_->clear(block.at(world.rank()), bytes); });
  return block;
}

uint64_t Pool::reserved() const {
  uint64_t bytes = 0;
  for (const Slab& slab : state_->slabs) bytes += slab.bytes;
  return bytes;
}

Pool::Block::Block() = default;
Pool::Block::Block(Block&& other) noexcept { *this = std::move(other); }

Pool::Block& Pool::Block::operator=(Block&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(slab_, other.slab_);
  std::swap(offset_, other.offset_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Pool::Block::~Block() {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  state_->slabs[slab_].give_back(offset_, round_up(bytes_, alignment));
}

char* Pool::Block::at(int rank) const {
  if (!state_) return nullptr;
  const std::lock_guard lock(state_->mutex);
  char* const slab = state_->slabs[slab_].mapped.at(rank);
  return slab ? slab + offset_ : nullptr;
}

}  // namespace chorale::cuda
