#include "geometry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "chorale/device/packet.hpp"
#include "chorale/device/vec.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/group.hpp"

namespace chorale::transport {
namespace {

std::string text_of(const RendezvousOptions& options, const std::string& what) {
  return fmt::format(
      "{} with {} bytes for each peer, {} channels, {} slots, {} bytes of packets, {} memory{}", what,
      options.per_peer_bytes, options.max_channels, options.depth, options.packet_bytes,
      options.space == Space::host ? "host" : "device",
      options.ring_at == RingAt::sender ? ", rings at the sender" : "");
}

/// Returns the bytes of the longest packet form for this payload, rounded up to whole lines, so that the next
/// message begins on a line.
uint64_t bytes_of_packets(uint64_t payload) {
  if (payload == 0) return 0;
  const uint64_t longest = std::max(packet_bytes<LL16>(payload), packet_bytes<LL128>(payload));
  return (longest + 127) / 128 * 128;
}

/// Returns whether the memory of a rank's links has fewer than 2^62 bytes, so that no sum of sizes overflows.
bool addressable(const RendezvousOptions& options, int ranks) {
  constexpr int bits = 62;
  if (options.packet_bytes >> (bits - 2) != 0) return false;  // packets take at most twice as much
  using Wide = unsigned __int128;
  const Wide channel = sizeof(LinkState) + packet_banks * Wide(bytes_of_packets(options.packet_bytes));
  return ((options.per_peer_bytes + options.max_channels * channel) * unsigned(ranks)) >> bits == 0;
}

/// Returns why these options are not allowed; "" if they are.
std::string wrong(const RendezvousOptions& options, int ranks) {
  if (options.max_channels == 0 || options.max_channels > 1024) {
    return fmt::format("max_channels is {}: it must be from 1 to 1024", options.max_channels);
  }
  if (options.depth == 0 || options.depth > 256) {
    return fmt::format("depth is {}: it must be from 1 to 256", options.depth);
  }
  const uint64_t slots = uint64_t(options.max_channels) * options.depth;
  if (options.per_peer_bytes / slots < unit_bytes) {
    return fmt::format("per_peer_bytes is {}: {} channels of {} slots of at least {} bytes need {}",
                       options.per_peer_bytes, options.max_channels, options.depth, unit_bytes,
                       slots * unit_bytes);
  }
  if (!addressable(options, ranks)) {
    return fmt::format(
        "per_peer_bytes is {} and packet_bytes {}, the latter on each of {} channels: with {} ranks that is "
        "more than can be addressed; use less",
        options.per_peer_bytes, options.packet_bytes, options.max_channels, ranks);
  }
  if (options.per_peer_bytes / slots > ~uint32_t{0}) {
    return fmt::format(
        "per_peer_bytes is {}: {} channels of {} slots get slots of {} bytes, and hooks count the elements "
        "of a slot with 32 bits; use less",
        options.per_peer_bytes, options.max_channels, options.depth, options.per_peer_bytes / slots);
  }
  return "";
}

}  // namespace

uint64_t Geometry::state_at(int peer, uint32_t channel) const {
  return (uint64_t(peer) * channels + channel) * sizeof(LinkState);
}
uint64_t Geometry::ring_at(int ranks, int peer, uint32_t channel) const {
  return state_at(ranks, 0) + (uint64_t(peer) * channels + channel) * window();
}
uint64_t Geometry::packets_at(int ranks, int peer, uint32_t channel) const {
  // LL128 packets must be aligned to lines.
  const uint64_t begin = (ring_at(ranks, ranks, 0) + 127) / 128 * 128;
  return begin + (uint64_t(peer) * channels + channel) * packet_banks * packet_bytes;
}
uint64_t Geometry::bytes(int ranks) const { return packets_at(ranks, ranks, 0); }

uint64_t offered_number(const World& world) {
  static std::atomic<uint64_t> made{0};
  return world.rank() == 0 ? 1 + made.fetch_add(1, std::memory_order_relaxed) : 0;
}

Geometry agree_on_geometry(World& world, const RendezvousOptions& options, const std::string& what) {
  world.group().require_one_host(what);
  // `mine` holds the number, and then the text that must be the same on all ranks.
  const uint64_t offered = offered_number(world);
  std::string mine(reinterpret_cast<const char*>(&offered), sizeof offered);
  mine += text_of(options, what);
  const auto all = world.allgather(std::as_bytes(std::span(mine.data(), mine.size())));
  const auto text = [&all](int of) {
    const std::vector<std::byte>& said = all[size_t(of)];
    return std::string(reinterpret_cast<const char*>(said.data()), said.size()).substr(sizeof offered);
  };
  for (int rank = 1; rank < world.ranks(); ++rank) {
    if (text(rank) != text(0)) {
      throw RunError(
          RunError::Reason::mismatch,
          fmt::format("the ranks make different transports: rank 0 {}, rank {} {}; they must be the same",
                      text(0), rank, text(rank)));
    }
  }
  if (const std::string why = wrong(options, world.ranks()); !why.empty())
    throw UsageError(fmt::format("{}: {}", what, why));
  Geometry geometry;
  geometry.channels = options.max_channels;
  geometry.depth = options.depth;
  geometry.ring = options.ring_at;
  geometry.number = world::read_as<uint64_t>(all[0]);
  geometry.slot =
      options.per_peer_bytes / (uint64_t(options.max_channels) * options.depth) / unit_bytes * unit_bytes;
  geometry.packet_bytes = bytes_of_packets(options.packet_bytes);
  return geometry;
}

}  // namespace chorale::transport
