#pragma once
// Links are what one rank holds of its connections to the others. A transport (chorale/transport.hpp) makes
// them on the host; kernels get an EndpointTable.
//
// A link joins two ranks over a channel, in both directions. Data for a rank goes through a ring in that
// rank's memory, or in the sender's, of `depth` slots of window / depth bytes. Positions count bytes of the
// stream that goes through a ring. They are multiples of 16 and only grow for the life of the transport. The
// kernels themselves keep them in device memory, so launches may follow each other, and be replayed in
// graphs, without any reset.

#include <cstdint>
#include <string>
#include <type_traits>

#include "chorale/device/divide.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/macros.hpp"
#include "chorale/device/signal.hpp"

namespace chorale {

/// Says what lies between two ranks.
enum class LinkKind : uint8_t {
  self,    ///< nothing: they are one
  direct,  ///< the peer's memory is mapped here: NVLink, PCIe, shared memory
  port,    ///< a proxy moves the data
  sw       ///< a switch that multicasts and reduces
};

/// Holds what a sender says of a message of packets, for checks; see packet_link.hpp.
struct PacketNote {
  uint64_t number = 0;  ///< the message's number, written last
  uint64_t word = 0;
};

/// Holds one end of a link, at its owner. These have cache lines of their own: what the owner counts; what
/// the peer tells of its data; what the peer tells of the room in its ring; and what the owner's proxy tells
/// or, without a proxy, what the peer says of packets.
struct LinkState {
  struct alignas(128) Cursor {
    uint64_t sent, received;                  ///< positions of the two streams
    uint64_t packets_sent, packets_received;  ///< messages of packets, see packet_link.hpp
    uint64_t orders;                          ///< data orders that a proxy was given
  };
  Cursor cursor;  ///< only the owner's kernels touch it
  /// Written by the peer: the position up to which its data has landed here. `note`: what it says of the
  /// message, for checks.
  Signal data_ready;
  /// Written by the peer: the position up to which it has read what was sent. `note`: messages of packets
  /// that it has read.
  Signal slot_free;
  struct alignas(128) Left {
    /// Over a proxy, which writes it: the number of orders whose data have left this rank's copy of the ring.
    uint64_t value = 0;
    PacketNote packets[2] = {};  ///< over other links, written by the peer: the notes of two banks
  };
  Left left;
};
static_assert(sizeof(LinkState) == 512 && std::is_trivially_copyable_v<LinkState>);

struct PortQueue;

/// Holds one rank's end of the link to one peer over one channel, with everything that a kernel needs of it.
struct Endpoint {
  int32_t self = -1, peer = -1, ranks = 0;
  LinkKind kind = LinkKind::self;
  uint32_t channel = 0, channels = 0;  ///< this channel, and the number of them
  uint32_t depth = 0;                  ///< slots of a ring
  uint64_t window = 0;                 ///< bytes of a ring
  char* send_dst = nullptr;            ///< direct: the ring that I fill; port: my copy of it
  const char* recv_src = nullptr;      ///< the ring that the peer fills
  LinkState* local = nullptr;          ///< my end
  LinkState* remote = nullptr;         ///< the peer's; null if only a proxy reaches it
  /// All of my end but the cursor: `local`, unless proxies of the host write it for a GPU.
  const LinkState* told = nullptr;
  PortQueue* port = nullptr;   ///< what the proxy is told, for LinkKind::port
  char* packet_dst = nullptr;  ///< as send_dst and recv_src, for packets; packet_banks of packet_bytes
  const char* packet_src = nullptr;
  uint64_t packet_bytes = 0;  ///< of slots in each bank; 0: this link has no packets

  CHORALE_HD uint64_t slot_bytes() const { return detail::quotient(window, depth); }
};
static_assert(std::is_trivially_copyable_v<Endpoint>);

/// Holds all links of a rank, in memory that its kernels read.
struct EndpointTable {
  const Endpoint* endpoints = nullptr;  ///< by peer, then by channel
  int32_t ranks = 0, self = -1;
  uint32_t channels = 0;      ///< channels of each peer that at() has
  uint32_t of_peer = 0;       ///< channels of each peer that `endpoints` has
  uint64_t packet_bytes = 0;  ///< the least of all links

  /// Returns the end of the link to `peer` over `channel`, the id of the group that uses it. One group at a
  /// time may use a peer, channel and direction. Refuses a peer or a channel that does not exist.
  CHORALE_FN const Endpoint& at(int32_t peer, uint32_t channel) const {
    if (uint32_t(peer) >= uint32_t(ranks)) refuse("there is no such peer");
    if (channel >= channels) refuse_channel(channel);
    return endpoints[uint64_t(peer) * of_peer + channel];
  }

  /// Returns the same links without the first `skipped` channels; the rest is numbered from 0. A split
  /// numbers the groups of each part from 0, so two parts at work would use the same channels. With this a
  /// group stays on the channel that it had before:
  ///   const Split half = group.split(2);
  ///   all_gather<T>(half.group, table.from_channel(group.id - half.group.id), ...);
  /// Refuses more channels than there are.
  CHORALE_FN EndpointTable from_channel(uint32_t skipped) const {
    if (skipped > channels) refuse_channel(skipped);
    EndpointTable rest = *this;
    rest.endpoints += skipped;
    rest.channels -= skipped;
    return rest;
  }
  CHORALE_FN LinkKind kind(int32_t peer) const { return at(peer, 0).kind; }

 private:
  CHORALE_FN void refuse_channel(uint32_t channel) const {
#if defined(__CUDACC__)
    (void)channel;
    refuse("more groups than channels");
#else
    refuse("more groups than channels: group " + std::to_string(channel) + " uses channel " +
           std::to_string(of_peer - channels + channel) + ", and the transport of rank " +
           std::to_string(self) + " has " + std::to_string(of_peer) +
           "; give it more max_channels, or launch fewer blocks");
#endif
  }
};
static_assert(std::is_trivially_copyable_v<EndpointTable>);

}  // namespace chorale
