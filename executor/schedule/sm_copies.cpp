#include "sm_copies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "executor/transport/in_device_memory.hpp"
#include "executor/transport/proxied.hpp"
#include "executor/world/collective_try.hpp"

namespace chorale::schedule_run {

using schedule::Mover;
using schedule::StepKind;

namespace {

constexpr uint32_t most_channels = 1024;

RendezvousOptions options_of(const Links& links, Space space) {
  // If senders write into the peer's tensor, their links need only counters.
  const bool counters = links.mover == Mover::kernel;
  const uint64_t share = units_of(std::max<uint64_t>(links.share_bytes, 1)) * unit_bytes;
  const uint64_t most = links.mover == Mover::port ? most_port_slot_bytes : most_slot_bytes;
  const uint64_t slot = counters ? unit_bytes : std::min(share, most);
  RendezvousOptions options;
  options.max_channels = links.channels;
  options.depth = counters ? 1 : ring_slots;
  options.per_peer_bytes = slot * options.depth * links.channels;
  options.space = space;
  // Between GPUs reads are faster than writes, and the receiver reads a tile once.
  if (links.mover == Mover::staged) options.ring_at = RingAt::sender;
  return options;
}

std::unique_ptr<Transport> connect(World& world, const Links& links, Space space) {
  const RendezvousOptions options = options_of(links, space);
  if (links.mover != Mover::port) return direct_rendezvous(world, options);
  return port_rendezvous(world, options,
                         space == Space::device ? ProxyKind::copy_engine : ProxyKind::shared_memory);
}

}  // namespace

uint64_t bytes_of_links(const Unrolled& all) {
  uint64_t bytes = 0;
  for (const Links& links : all.channels.links) {
    const RendezvousOptions options = options_of(links, Space::host);
    // A proxy moves the data from a copy of the peer's ring.
    const uint64_t rings = options.per_peer_bytes * (links.mover == Mover::port ? 2 : 1);
    bytes += all.concrete.ranks * (rings + links.channels * sizeof(LinkState));
  }
  return bytes;
}

void check_links(const ChannelAssignment& assigned) {
  for (const Links& links : assigned.links) {
    if (links.channels <= most_channels) continue;
    throw UsageError(fmt::format(
        "transfers via '{}' need {} channels between two ranks, and there are at most {}: use fewer "
        "streams, or a smaller CHORALE_MOVER_BLOCKS",
        schedule::mover_names[size_t(links.mover)], links.channels, most_channels));
  }
}

SmCopies::SmCopies(World& world, const Unrolled& all, Space space, const RankProgram& program)
    : world_(world), space_(space), first_(program.actions.data()), sm_copies_(program.actions.size()) {
  std::vector<EndpointTable> tables(std::size(schedule::mover_names));
  for (const Links& links : all.channels.links) {
    transports_.push_back(connect(world, links, space));
    tables[size_t(links.mover)] = transports_.back()->table();
    for (Proxied* const proxy : transports_.back()->proxies()) proxies_.push_back(proxy);
  }
  world::collective_try(world, [&] { place(program, tables); });
}

void SmCopies::place(const RankProgram& program, const std::vector<EndpointTable>& tables) {
  for (size_t at = 0; at < program.actions.size(); ++at) {
    const Action& action = program.actions[at];
    if (action.kind != StepKind::sm_copy) continue;
    const Mover mover = action.step->transfers.at(0).mover;
    SmCopy& made = sm_copies_[at].emplace();
    made.links = tables[size_t(mover)];
    made.zero_copy = mover == Mover::kernel;
    std::vector<SmCopyPart> parts;
    for (const Action::Transfer& one : action.transfers) {
      SmCopyPart& part = parts.emplace_back();
      part.regions = static_cast<const StridedRegion*>(
          place(one.regions.data(), one.regions.size() * sizeof(StridedRegion)));
      part.region_count = uint32_t(one.regions.size());
      part.sends = one.sends;
      part.peer = int32_t(one.peer);
      part.channel = one.channel;
      part.first = made.blocks;
      part.blocks = one.blocks;
      part.bytes = one.bytes;
      made.blocks += one.blocks;
    }
    made.parts = static_cast<const SmCopyPart*>(place(parts.data(), parts.size() * sizeof(SmCopyPart)));
  }
}

/// Copies data to memory that the blocks read, and returns the copy.
const void* SmCopies::place(const void* data, uint64_t bytes) {
  if (bytes == 0) return nullptr;
  if (space_ == Space::device) {
    kept_.push_back(transport::device_copy(data, bytes));
  } else {
    const auto copy = std::make_shared<std::vector<uint64_t>>((bytes + 7) / 8);
    std::memcpy(copy->data(), data, bytes);
    kept_.push_back({copy, copy->data()});
  }
  return kept_.back().get();
}

AbortWord* SmCopies::device_abort_word() const {
  return transports_.empty() ? nullptr : transports_.front()->device_abort_word();
}

SmCopies::Use::Use(SmCopies& copies) : sm_copies_(copies) {
  if (sm_copies_.proxies_.empty()) return;
  const std::lock_guard lock(sm_copies_.mutex_);
  if (sm_copies_.uses_++ == 0)
    for (Proxied* const proxy : sm_copies_.proxies_) proxy->begin();
}

SmCopies::Use::~Use() {
  if (sm_copies_.proxies_.empty()) return;
  const std::lock_guard lock(sm_copies_.mutex_);
  if (--sm_copies_.uses_ > 0) return;
  const bool stopped = load_acquire(&sm_copies_.world_.abort_word()->stop) != 0;
  for (Proxied* const proxy : sm_copies_.proxies_) proxy->end(stopped);
}

}  // namespace chorale::schedule_run
