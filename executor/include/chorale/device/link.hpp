#pragma once
// A link is one rank's connection to another. A transport (chorale/transport.hpp) makes the links on the
// host; kernels get them in an EndpointTable.
//
// A link joins two ranks over a channel, in both directions. Data for a rank goes through a ring, which is in
// that rank's memory or in the sender's. A ring has `depth` slots of window / depth bytes. A position counts
// the bytes of the stream that goes through a ring. Positions are multiples of 16 and only grow for the life
// of the transport. Kernels keep them in device memory, so launches may follow each other, and be replayed in
// graphs, without any reset.

#include <cstdint>
#include <string>
#include <type_traits>

#include "chorale/device/divide.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/macros.hpp"
#include "chorale/device/signal.hpp"

namespace chorale {

/// Says what connects two ranks. With `self` both are the same rank. With `direct` the memory of the peer is
/// mapped here (NVLink, PCIe, shared memory). With `port` a proxy moves the data.
enum class LinkKind : uint8_t {
#define CHORALE_LINK(name, fabric, ring) name,
#include "chorale/device/links.def"
};

/// Holds what a sender says about a message of packets, for checks; see packet_link.hpp.
struct PacketNote {
  uint64_t number = 0;  ///< the message's number, written last
  uint64_t word = 0;
};

/// Holds one end of a link, in its owner's memory. Each member has a separate cache line. The owner writes
/// `cursor`. The peer writes `data_ready` and `slot_free`. The proxy writes `left`, or if there is no proxy
/// the peer.
struct LinkState {
  struct alignas(128) Cursor {
    uint64_t sent, received;                  ///< positions of the two streams
    uint64_t packets_sent, packets_received;  ///< numbers of packet messages, see packet_link.hpp
    uint64_t orders;                          ///< number of data orders given to the proxy
  };
  Cursor cursor;  ///< only the owner's kernels access it
  /// The peer writes here the position up to which its data has arrived. `note` describes the message, for
  /// checks.
  Signal data_ready;
  /// The peer writes here the position up to which it has read the data sent to it. `note` is the number of
  /// packet messages that it has read.
  Signal slot_free;
  struct alignas(128) Left {
    /// The proxy, if there is one, writes here the number of orders whose data has left this rank's copy of
    /// the ring.
    uint64_t value = 0;
    PacketNote packets[2] = {};  ///< written by the peer, without a proxy: the notes of two banks
  };
  Left left;
};
static_assert(sizeof(LinkState) == 512 && std::is_trivially_copyable_v<LinkState>);

struct PortQueue;

/// Holds one rank's end of the link to one peer over one channel, with everything that a kernel needs.
struct Endpoint {
  int32_t self = -1, peer = -1, ranks = 0;
  LinkKind kind = LinkKind::self;
  uint32_t channel = 0, channels = 0;  ///< this channel, and the number of channels
  uint32_t depth = 0;                  ///< slots of a ring
  uint64_t window = 0;                 ///< bytes of a ring
  char* send_dst = nullptr;        ///< direct: the ring that this rank fills; port: this rank's copy of it
  const char* recv_src = nullptr;  ///< the ring that the peer fills
  LinkState* local = nullptr;      ///< this rank's end
  LinkState* remote = nullptr;     ///< the peer's end; null if only a proxy reaches it
  /// Points to the members of this rank's end that others write, which are all but the cursor. It equals
  /// `local`, unless proxies on the host write these members for a GPU.
  const LinkState* told = nullptr;
  PortQueue* port = nullptr;   ///< the orders to the proxy, for LinkKind::port
  char* packet_dst = nullptr;  ///< like send_dst and recv_src, for packets; packet_banks of packet_bytes each
  const char* packet_src = nullptr;
  uint64_t packet_bytes = 0;  ///< bytes of slots in each bank; 0: this link has no packets

  CHORALE_HD uint64_t slot_bytes() const { return detail::quotient(window, depth); }
};
static_assert(std::is_trivially_copyable_v<Endpoint>);

/// Holds all links of a rank, in memory that its kernels read.
struct EndpointTable {
  const Endpoint* endpoints = nullptr;  ///< by peer, then by channel
  int32_t ranks = 0, self = -1;
  uint32_t channels = 0;      ///< channels per peer that at() accepts
  uint32_t of_peer = 0;       ///< channels per peer in `endpoints`
  uint64_t packet_bytes = 0;  ///< the smallest packet_bytes of all links

  /// Returns the end of the link to `peer` over `channel`, which is the id of the group that uses it. Only
  /// one group at a time may use a peer, channel and direction. Refuses a peer or a channel that does not
  /// exist.
  CHORALE_FN const Endpoint& at(int32_t peer, uint32_t channel) const {
    if (uint32_t(peer) >= uint32_t(ranks)) refuse("there is no such peer");
    if (channel >= channels) refuse_channel(channel);
    return endpoints[uint64_t(peer) * of_peer + channel];
  }

  /// Returns the same links without the first `skipped` channels; the others are numbered from 0. A split
  /// numbers the groups of each part from 0, so two parts that work at the same time would use the same
  /// channels. With this call a group keeps the channel that it had before the split:
  ///  const Split half = group.split(2);
  ///  all_gather<T>(half.group, table.from_channel(group.id - half.group.id), ...);
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
