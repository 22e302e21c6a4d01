#pragma once
// Links: what one rank holds of its connections to the others. A transport (chorale/transport.hpp) makes them
// on the host; kernels get an EndpointTable.
//
// A link joins two ranks over a channel, in both directions. Data for a rank goes through a ring in that
// rank's memory, or in the sender's, of `depth` slots of window / depth bytes. Positions count bytes of the
// stream that goes through a ring; they are multiples of 16, only grow for the life of the transport, and are
// kept in device memory, by the kernels themselves. So launches may follow each other, and be replayed in
// graphs, without any reset.

#include <cstdint>
#include <string>
#include <type_traits>

#include "chorale/device/divide.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/macros.hpp"
#include "chorale/device/signal.hpp"

namespace chorale {

/// What lies between two ranks.
enum class LinkKind : uint8_t {
  self,    ///< nothing: they are one
  direct,  ///< the peer's memory is mapped here: NVLink, PCIe, shared memory
  port,    ///< a proxy moves the data
  sw       ///< a switch that multicasts and reduces
};

/// What a sender says of a message of packets, for checks: see packet_link.hpp.
struct PacketNote {
  uint64_t number = 0;  ///< of the message, written last
  uint64_t word = 0;
};

/// One end of a link, at its owner. On lines of their own: what the owner counts, what the peer tells of its
/// data, what it tells of the room in its ring, and what the owner's proxy tells; where there is no proxy,
/// what the peer says of packets.
struct LinkState {
  struct alignas(128) Cursor {
    uint64_t sent, received;                  ///< positions of the two streams
    uint64_t packets_sent, packets_received;  ///< messages of packets, see packet_link.hpp
    uint64_t orders;                          ///< data that a proxy was told of
  };
  Cursor cursor;      ///< only the owner's kernels touch it
  Signal data_ready;  ///< written by the peer: the position up to which its data has landed here.
                      ///< `note`: what it says of the message, for checks
  Signal slot_free;   ///< written by the peer: the position up to which it has read what was sent.
                      ///< `note`: messages of packets that it has read
  struct alignas(128) Left {
    uint64_t value = 0;          ///< over a proxy, written by that: of so many orders the data have left this
                                 ///< rank's copy of the ring
    PacketNote packets[2] = {};  ///< over other links, written by the peer: of the messages in two banks
  };
  Left left;
};
static_assert(sizeof(LinkState) == 512 && std::is_trivially_copyable_v<LinkState>);

struct PortQueue;

/// One rank's end of the link to one peer over one channel, with everything that a kernel needs of it.
struct Endpoint {
  int32_t self = -1, peer = -1, ranks = 0;
  LinkKind kind = LinkKind::self;
  uint32_t channel = 0, channels = 0;  ///< of how many
  uint32_t depth = 0;                  ///< slots of a ring
  uint64_t window = 0;                 ///< bytes of a ring
  char* send_dst = nullptr;            ///< direct: the ring that I fill; port: my copy of it
  const char* recv_src = nullptr;      ///< the ring that the peer fills
  LinkState* local = nullptr;          ///< my end
  LinkState* remote = nullptr;         ///< the peer's; null where only a proxy reaches it
  const LinkState* told = nullptr;     ///< where all of my end but the cursor is: `local`, unless proxies of
                                       ///< the host write it for a GPU
  PortQueue* port = nullptr;           ///< what the proxy is told, for LinkKind::port
  char* packet_dst = nullptr;  ///< as send_dst and recv_src, for packets; packet_banks of packet_bytes
  const char* packet_src = nullptr;
  uint64_t packet_bytes = 0;  ///< of slots in each bank; 0: this link has no packets

  CHORALE_HD uint64_t slot_bytes() const { return detail::quotient(window, depth); }
};
static_assert(std::is_trivially_copyable_v<Endpoint>);

/// All links of a rank, in memory that its kernels read.
struct EndpointTable {
  const Endpoint* endpoints = nullptr;  ///< by peer, then by channel
  int32_t ranks = 0, self = -1;
  uint32_t channels = 0;      ///< that at() has of each peer
  uint32_t of_peer = 0;       ///< that `endpoints` has of each peer
  uint64_t packet_bytes = 0;  ///< the least of all links

  /// `channel` is the id of the group that uses it: one group at a time a peer, channel and direction.
  /// Refuses a peer or a channel that is not there.
  CHORALE_FN const Endpoint& at(int32_t peer, uint32_t channel) const {
    if (uint32_t(peer) >= uint32_t(ranks)) refuse("there is no such peer");
    if (channel >= channels) refuse_channel(channel);
    return endpoints[uint64_t(peer) * of_peer + channel];
  }

  /// The same links without the first `skipped` channels; what is left is numbered from 0. A split numbers
  /// the groups of each part from 0, so that two parts at work would be on the same channels. This way a
  /// group is on that which it had before:
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
