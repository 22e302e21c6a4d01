#include "peer_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "executor/world/collective_try.hpp"
#include "executor/world/descriptors.hpp"
#include "exports.hpp"
#include "identity.hpp"
#include "imported.hpp"

namespace chorale::cuda {

using system::Descriptor;
using world::collective_try;

namespace {

template <class T>
void append(std::vector<std::byte>& to, const T* values, size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::byte* const first = reinterpret_cast<const std::byte*>(values);
  to.insert(to.end(), first, first + count * sizeof(T));
}

template <class T>
void take(std::span<const std::byte>& from, T* values, size_t count) {
  if (count == 0) return;
  std::memcpy(values, from.data(), count * sizeof(T));
  from = from.subspan(count * sizeof(T));
}

/// Holds the fixed part of an Offer as it is sent.
struct Head {
  uint64_t pointer, bytes, offset, parts, freed;
};

/// Describes one rank's buffer in an exchange.
struct Offer {
  struct Part {
    uint64_t number = 0;  ///< Exports::number_of()
    uint64_t bytes = 0;
    Sharing sharing = Sharing::ipc;
    HandleBytes handle{};
  };

  uint64_t pointer = 0;  ///< the address in the owner's process
  uint64_t bytes = 0;    ///< 0: nothing is offered
  uint64_t offset = 0;   ///< the offset of the buffer in the first part
  std::vector<Part> parts;
  std::vector<uint64_t> freed;  ///< numbers of allocations that no longer exist

  std::vector<std::byte> to_bytes() const {
    const Head head{pointer, bytes, offset, parts.size(), freed.size()};
    std::vector<std::byte> all;
    append(all, &head, 1);
    append(all, parts.data(), parts.size());
    append(all, freed.data(), freed.size());
    return all;
  }

  static Offer from_bytes(std::span<const std::byte> from) {
    Head head;
    take(from, &head, 1);
    Offer offer;
    offer.pointer = head.pointer;
    offer.bytes = head.bytes;
    offer.offset = head.offset;
    offer.parts.resize(head.parts);
    offer.freed.resize(head.freed);
    take(from, offer.parts.data(), head.parts);
    take(from, offer.freed.data(), head.freed);
    return offer;
  }

  std::vector<uint64_t> numbers() const {
    std::vector<uint64_t> all;
    for (const Part& part : parts) all.push_back(part.number);
    return all;
  }

  size_t descriptors() const {
    return size_t(std::count_if(parts.begin(), parts.end(),
                                [](const Part& part) { return part.sharing == Sharing::descriptor; }));
  }
};

}  // namespace

struct Imports::State {
  int device = -1;
  std::vector<RankDevice> devices;
  std::unique_ptr<world::DescriptorPassing> passing;  // null if all ranks are in this process
  Exports exports;
  std::vector<uint64_t> freed;  // exports that no longer exist, until the peers know
  ImportCache cache;
  std::vector<bool> far;  // by rank: it is on another host

  bool same_process(int self, int peer) const {
    return !far[peer] && devices[self].process == devices[peer].process;
  }

  std::vector<Segment> make_offer(const void* mine, uint64_t bytes, Offer& offer);
  std::vector<bool> want_descriptors(int self, const std::vector<Offer>& offers);
  std::shared_ptr<Imported> import(int peer, const Offer& offer, const std::vector<Descriptor>& descriptors);
};

namespace {

Located locate_shareable(const void* memory, uint64_t bytes) {
  Located located = locate(memory, bytes);
  if (located.segments.empty()) {
    throw RunError(RunError::Reason::other,
                   fmt::format("peers cannot map {} bytes at {}: {}; use memory of cudaMalloc, or copy "
                               "through scratch",
                               bytes, memory, located.why_not));
  }
  return located;
}

/// Lets this device use the memory of a peer in this process, so that the peer's pointer is valid here.
void reach_mapping(const Offer& offer, int device) {
  const Located located = locate_shareable(reinterpret_cast<const void*>(offer.pointer), offer.bytes);
  if (located.device == device || located.segments[0].sharing == Sharing::ipc) return;
  for (const Segment& segment : located.segments) give_access(segment.base, segment.bytes, device);
}

/// Runs `step`. If it throws, adds the rank whose memory is concerned to the message.
template <class Step>
void naming_rank(int rank, const Step& step) {
  try {
    step();
  } catch (const RunError& failed) {
    throw RunError(failed.reason, fmt::format("mapping the memory of rank {}: {}", rank, failed.what()));
  }
}

std::vector<Foreign> foreign_parts(const world::Process& owner, const Offer& offer,
                                   const std::vector<Descriptor>& descriptors) {
  std::vector<Foreign> parts;
  size_t next = 0;
  for (const Offer::Part& part : offer.parts) {
    Foreign foreign{part.bytes, part.sharing, part.handle, -1, owner, offer.pointer - offer.offset};
    if (part.sharing == Sharing::descriptor) foreign.descriptor = descriptors.at(next++).get();
    parts.push_back(foreign);
  }
  return parts;
}

/// Returns the descriptors of those ranks whose memory this one has to open. Collective. Nothing happens if
/// no rank has to open any.
std::vector<std::vector<Descriptor>> fetch_descriptors(World& world, world::DescriptorPassing& passing,
                                                       const std::vector<Segment>& mine,
                                                       const std::vector<bool>& wanted) {
  std::vector<std::byte> wants;
  for (const bool want : wanted) wants.push_back(std::byte(want));
  bool any = false, of_me = false;
  for (const auto& theirs : world.allgather(wants)) {
    any |= std::count(theirs.begin(), theirs.end(), std::byte{1}) != 0;
    of_me |= theirs[world.rank()] == std::byte{1};
  }
  if (!any) return std::vector<std::vector<Descriptor>>(world.ranks());
  std::vector<Descriptor> exported;
  std::vector<int> numbers;
  collective_try(world, [&] {
    for (const Segment& segment : mine) {
      if (!of_me || segment.sharing != Sharing::descriptor) continue;
      exported.push_back(descriptor_of(segment));
      numbers.push_back(exported.back().get());
    }
  });
  return passing.pass(world, numbers, wanted);
}

}  // namespace

/// Fills `offer`; returns the segments that contain the buffer.
std::vector<Segment> Imports::State::make_offer(const void* mine, uint64_t bytes, Offer& offer) {
  for (const uint64_t number : exports.forget_freed()) freed.push_back(number);
  offer.freed = freed;
  if (!mine || bytes == 0) return {};
  Located located = locate_shareable(mine, bytes);
  offer.pointer = reinterpret_cast<uint64_t>(mine);
  offer.bytes = bytes;
  offer.offset = located.offset;
  for (const Segment& segment : located.segments) {
    // In one process pointers suffice, but a number also lets identity_of() distinguish later memory.
    Offer::Part part{exports.number_of(segment), segment.bytes, segment.sharing, {}};
    if (passing) part.handle = handle_of(segment);
    offer.parts.push_back(part);
  }
  return located.segments;
}

/// Returns the ranks from which this one needs descriptors. Closes imports that those ranks have freed.
std::vector<bool> Imports::State::want_descriptors(int self, const std::vector<Offer>& offers) {
  std::vector<bool> wanted(offers.size());
  for (size_t peer = 0; peer < offers.size(); ++peer) {
    const Offer& offer = offers[peer];
    cache.drop(int(peer), offer.freed);
    if (offer.descriptors() == 0 || far[peer] || same_process(self, int(peer))) continue;
    wanted[peer] = !cache.find({int(peer), offer.numbers()});
  }
  return wanted;
}

std::shared_ptr<Imported> Imports::State::import(int peer, const Offer& offer,
                                                 const std::vector<Descriptor>& descriptors) {
  const ImportCache::Key key{peer, offer.numbers()};
  if (std::shared_ptr<Imported> held = cache.find(key)) return held;
  return cache.open(key, foreign_parts(devices[peer].process, offer, descriptors));
}

Imports::Imports(World& world) : state_(std::make_unique<State>()) {
  state_->devices = gather_devices(world);
  state_->device = state_->devices[world.rank()].ordinal;
  for (int peer = 0; peer < world.ranks(); ++peer)
    state_->far.push_back(!world.group().on_one_host(world.rank(), peer));
  const auto of_one_process = [&](const RankDevice& device) {
    return device.process == state_->devices[0].process;
  };
  const bool one_process = !world.group().several_hosts() &&
                           std::all_of(state_->devices.begin(), state_->devices.end(), of_one_process);
  if (!one_process) state_->passing = std::make_unique<world::DescriptorPassing>(world);
}

Imports::~Imports() = default;
Imports::Imports(Imports&&) noexcept = default;
Imports& Imports::operator=(Imports&&) noexcept = default;
const std::vector<RankDevice>& Imports::devices() const { return state_->devices; }
void Imports::trim() { state_->cache.limit_unused(0); }
size_t Imports::held() const { return state_->cache.size(); }
size_t Imports::opened() const { return state_->cache.opened(); }

PeerMemory::PeerMemory() = default;
PeerMemory::PeerMemory(PeerMemory&&) noexcept = default;
PeerMemory& PeerMemory::operator=(PeerMemory&&) noexcept = default;
PeerMemory::~PeerMemory() = default;

bool PeerMemory::stale() const {
  return std::any_of(shares_.begin(), shares_.end(),
                     [](const Share& share) { return share.keep && share.keep->stale(); });
}

PeerMemory PeerMemory::exchange(World& world, Imports& imports, const void* mine, uint64_t bytes) {
  Imports::State& state = *imports.state_;
  const OutsideCapture outside;
  const CurrentDevice device(state.device);
  const int self = world.rank();

  Offer offer;
  std::vector<Segment> segments;
  collective_try(world, [&] { segments = state.make_offer(mine, bytes, offer); });
  std::vector<Offer> offers;
  for (const auto& theirs : world.allgather(offer.to_bytes())) offers.push_back(Offer::from_bytes(theirs));
  state.freed.clear();

  std::vector<std::vector<Descriptor>> descriptors(world.ranks());
  if (state.passing) {
    descriptors = fetch_descriptors(world, *state.passing, segments, state.want_descriptors(self, offers));
  }

  PeerMemory memory;
  memory.shares_.resize(world.ranks());
  collective_try(world, [&] {
    for (int peer = 0; peer < world.ranks(); ++peer) {
      const Offer& from = offers[peer];
      if (from.bytes == 0 || state.far[peer]) continue;
      Share& share = memory.shares_[peer];
      share.bytes = from.bytes;
      if (state.same_process(self, peer)) {
        if (peer != self) naming_rank(peer, [&] { reach_mapping(from, state.device); });
        share.data = reinterpret_cast<char*>(from.pointer);
      } else {
        naming_rank(peer, [&] { share.keep = state.import(peer, from, descriptors[peer]); });
        share.data = share.keep->data() + from.offset;
      }
    }
  });
  state.cache.limit_unused(Imports::unused_limit);
  return memory;
}

}  // namespace chorale::cuda
