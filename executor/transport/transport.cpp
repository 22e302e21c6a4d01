#include "chorale/transport.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "chorale/device.hpp"
#include "chorale/launch.hpp"
#include "rings.hpp"

namespace chorale {
namespace transport {

void check_place(const Transport& transport, int peer, uint32_t channel) {
  if (peer < 0 || peer >= transport.world_size()) {
    throw UsageError(fmt::format("there is no rank {}: there are {}", peer, transport.world_size()));
  }
  if (channel >= transport.max_channels()) {
    throw UsageError(fmt::format("there is no channel {}: there are {}", channel, transport.max_channels()));
  }
}

EndpointTable make_table(const Endpoint* seen, const std::vector<Endpoint>& endpoints) {
  const Endpoint& first = endpoints.front();
  EndpointTable table{seen, first.ranks, first.self, first.channels, first.channels, first.packet_bytes};
  for (const Endpoint& e : endpoints) table.packet_bytes = std::min(table.packet_bytes, e.packet_bytes);
  return table;
}

Endpoint Rings::endpoint(int peer, uint32_t channel) const {
  check_place(*this, peer, channel);
  return endpoints_[size_t(peer) * geometry_.channels + channel];
}

void Rings::make_endpoints(LinkKind kind) {
  endpoints_.resize(size_t(world_size()) * geometry_.channels);
  for (int peer = 0; peer < world_size(); ++peer) {
    for (uint32_t channel = 0; channel < geometry_.channels; ++channel) {
      Endpoint& e = at(peer, channel);
      e.self = rank();
      e.peer = peer;
      e.ranks = world_size();
      e.kind = peer == rank() ? LinkKind::self : kind;
      e.channel = channel;
      e.channels = geometry_.channels;
      e.depth = geometry_.depth;
      e.window = geometry_.window();
      e.packet_bytes = geometry_.packet_bytes;
    }
  }
}

void Rings::make_direct_endpoints(const std::vector<char*>& memory, LinkKind kind) {
  make_endpoints(kind);
  const int ranks = world_size(), self = rank();
  char* const mine = memory[size_t(self)];
  const bool here = geometry_.ring == RingAt::receiver;
  for (int peer = 0; peer < ranks; ++peer) {
    char* const theirs = memory[size_t(peer)];
    for (uint32_t channel = 0; channel < geometry_.channels; ++channel) {
      Endpoint& e = at(peer, channel);
      e.told = e.local = reinterpret_cast<LinkState*>(mine + geometry_.state_at(peer, channel));
      e.remote = reinterpret_cast<LinkState*>(theirs + geometry_.state_at(self, channel));
      // Each rank has one ring per peer, for data from the peer (RingAt::receiver) or to the peer
      // (RingAt::sender).
      char* const my_ring = mine + geometry_.ring_at(ranks, peer, channel);
      char* const their_ring = theirs + geometry_.ring_at(ranks, self, channel);
      e.recv_src = here ? my_ring : their_ring;
      e.send_dst = here ? their_ring : my_ring;
      e.packet_src = mine + geometry_.packets_at(ranks, peer, channel);
      e.packet_dst = theirs + geometry_.packets_at(ranks, self, channel);
    }
  }
}

void Rings::make_port_endpoints(char* mine, const char* told, char* stages, PortQueue* queue, LinkKind kind) {
  make_endpoints(kind);
  const int ranks = world_size();
  for (int peer = 0; peer < ranks; ++peer) {
    for (uint32_t channel = 0; channel < geometry_.channels; ++channel) {
      Endpoint& e = at(peer, channel);
      e.packet_bytes = 0;
      e.local = reinterpret_cast<LinkState*>(mine + geometry_.state_at(peer, channel));
      e.told = reinterpret_cast<const LinkState*>(told + geometry_.state_at(peer, channel));
      e.recv_src = mine + geometry_.ring_at(ranks, peer, channel);
      if (peer == rank()) {  // a rank's links to itself need no proxy
        e.told = e.remote = e.local;
        e.send_dst = const_cast<char*>(e.recv_src);
      } else {
        e.send_dst = stages + geometry_.stage_at(peer, channel);
        e.port = queue;
      }
    }
  }
}

}  // namespace transport

void Transport::set_mended() {
  broken_ = used_ = false;
  resets_ = world_->resets();
}

void Transport::set_broken() {
  broken_ = true;
  for (Transport* const part : parts()) part->set_broken();
}

Transport::Use::Claim::Claim(Transport& of) : transport(of) {
  if (transport.in_use_.exchange(true, std::memory_order_acquire))
    throw UsageError("a transport allows one launch at a time, and one is running");
}

Transport::Use::Claim::~Claim() { transport.in_use_.store(false, std::memory_order_release); }

Transport::Use::Use(Transport& transport, const void* stream) : claim_(transport) {
  // The host does not know whether a launch on a GPU was stopped.
  const bool forgotten = transport.space() == Space::device && transport.used_ &&
                         transport.resets_ != transport.world().resets();
  if (transport.broken_ || forgotten) {
    throw UsageError(
        "a launch on this transport was stopped, or may have been, so leftovers in the links would be taken "
        "for data: call World::reset() and then Transport::reset() on all ranks");
  }
  if (transport.has_stream_ && transport.stream_ != stream) {
    throw UsageError(
        "another stream has used this transport: synchronise with that stream, then call "
        "Transport::hand_over()");
  }
  for (Transport* const part : transport.parts()) parts_.push_back(std::make_unique<Use>(*part, stream));
  transport.has_stream_ = transport.used_ = true;
  transport.stream_ = stream;
}

void Transport::hand_over() {
  has_stream_ = false;
  for (Transport* const part : parts()) part->hand_over();
}

uint64_t detail::bytes_of(uint64_t elements, uint64_t element_bytes) {
  // The library computes positions up to about a slot after the end of a message, which must not overflow.
  if (elements > (~uint64_t{0} >> 1) / element_bytes) {
    throw UsageError(
        fmt::format("{} elements of {} bytes are more than any memory holds", elements, element_bytes));
  }
  return elements * element_bytes;
}

void check_transfer(const Transport& transport, uint64_t elements, uint64_t element_bytes, uint32_t groups,
                    Form form) {
  const uint64_t slot = transport.slot_bytes(), region = transport.per_peer_bytes();
  if (element_bytes == 0) throw UsageError("element_bytes is 0: it must be the bytes of an element");
  if (slot % element_bytes != 0) {
    throw UsageError(
        fmt::format("a slot of {} bytes is no whole number of elements of {} bytes: give the transport other "
                    "per_peer_bytes, channels or depth",
                    slot, element_bytes));
  }
  const uint64_t bytes = detail::bytes_of(elements, element_bytes);
  if (form == Form::whole && bytes > region) {
    throw UsageError(
        fmt::format("{} bytes do not fit in a region of {} bytes: give the transport more "
                    "per_peer_bytes, or send less at a time",
                    bytes, region));
  }
  if (groups == 0 || groups > transport.max_channels()) {
    throw UsageError(
        fmt::format("{} groups for {} channels: each group needs a separate channel, so launch from 1 to "
                    "{} blocks, or give the transport more max_channels",
                    groups, transport.max_channels(), transport.max_channels()));
  }
  // The first group has the largest share.
  Leg message;
  message.bytes = bytes;
  message.elem = uint32_t(element_bytes);
  const uint64_t share = share_of(message, 0, groups).bytes;
  const uint64_t tiles = share / slot + (share % slot != 0 ? 1 : 0);
  const uint32_t depth = transport.depth();
  if (form == Form::whole && tiles > depth) {
    throw UsageError(
        fmt::format("{} bytes for each of {} groups do not fit in a ring of {} slots of {} bytes: use "
                    "more groups, up to {}",
                    share, groups, depth, slot, transport.max_channels()));
  }
  if (form == Form::send_then_receive && tiles > depth) {
    throw UsageError(
        fmt::format("a group that sends {} bytes and then receives over a ring of {} slots of {} bytes never "
                    "ends, since its "
                    "peer does the same: use sendrecv_tiles(), a group for each direction, or a longer ring",
                    share, depth, slot));
  }
  if (form == Form::interleaved && tiles > 1 && depth < 2) {
    throw UsageError(
        fmt::format("sending and receiving {} bytes by turns, in slots of {} bytes, needs 2 slots, and the "
                    "ring has 1: give the "
                    "transport a depth of 2",
                    share, slot));
  }
}

void check_transfer(const Transport& transport, uint64_t elements, DType type, uint32_t groups, Form form) {
  check_transfer(transport, elements, uint64_t(dtype_size(type)), groups, form);
}

void detail::check_message(const Transport& transport, const Leg& message, uint64_t element_bytes, int peer,
                           const LaunchConfig& config) {
  transport.endpoint(peer);
  if (message.elem == 0) {
    throw UsageError("Leg::elem is 0: it is the bytes of an element, or 1 for those of the launcher's type");
  }
  if (message.elem != 1 && message.elem % element_bytes != 0) {
    throw UsageError(fmt::format(
        "Leg::elem is {}, but the elements on the link have {} bytes: make it a multiple of that, "
        "or 1, for one of them",
        message.elem, element_bytes));
  }
  if (message.elem != 1) element_bytes = message.elem;
  if (message.bytes % element_bytes != 0) {
    throw UsageError(
        fmt::format("a message of {} bytes is no whole number of elements of {} bytes: make Leg::bytes a "
                    "multiple of Leg::elem",
                    message.bytes, element_bytes));
  }
  if (message.tile_bytes % element_bytes != 0) {
    throw UsageError(
        fmt::format("Leg::tile_bytes is {}, which cuts elements of {} bytes: make it a multiple of Leg::elem",
                    message.tile_bytes, element_bytes));
  }
  if (message.tile_bytes > transport.slot_bytes()) {
    throw UsageError(fmt::format(
        "Leg::tile_bytes is {}, but a slot holds {}: use smaller tiles, 0 for one per slot, or give "
        "the transport more per_peer_bytes, or fewer channels or slots",
        message.tile_bytes, transport.slot_bytes()));
  }
  check_transfer(transport, message.bytes / element_bytes, element_bytes, config.blocks);
}

}  // namespace chorale
