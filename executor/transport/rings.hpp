/// \file
/// Rings is the base of transports whose links have rings of one geometry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chorale/transport.hpp"
#include "geometry.hpp"

namespace chorale::transport {

/// Checks a peer and a channel.
/// \throws UsageError if there is no such peer or channel
void check_place(const Transport& transport, int peer, uint32_t channel);

/// Makes the table of `endpoints`, which are ordered by peer and then by channel.
/// \param seen  the address at which kernels read the endpoints
EndpointTable make_table(const Endpoint* seen, const std::vector<Endpoint>& endpoints);

/// Writes a word into the link's end at its owner, once the data before it is there.
/// \param free  the word is slot_free, else data_ready
/// \param note  0: none
inline void post(LinkState& link, bool free, uint64_t value, uint64_t note) {
  if (free) return store_release(&link.slot_free.value, value);
  if (note != 0) store_relaxed(&link.data_ready.note, note);
  store_release(&link.data_ready.value, value);
}

class Rings : public Transport {
 public:
  uint64_t per_peer_bytes() const override { return geometry_.window() * geometry_.channels; }
  uint32_t max_channels() const override { return geometry_.channels; }
  uint32_t depth() const override { return geometry_.depth; }
  uint64_t slot_bytes() const override { return geometry_.slot; }
  Space space() const override { return space_; }
  LinkKind link_kind(int peer) const override { return endpoint(peer, 0).kind; }
  Endpoint endpoint(int peer, uint32_t channel) const override;

  /// Returns a table in host memory.
  EndpointTable table() const override { return make_table(endpoints_.data(), endpoints_); }

 protected:
  Rings(World& world, Space space, const Geometry& geometry)
      : Transport(world, geometry.number), geometry_(geometry), space_(space) {}

  /// Makes all endpoints, and sets the members that do not depend on memory. `kind` is the kind of links to
  /// other ranks.
  void make_endpoints(LinkKind kind);
  /// Makes the endpoints of links over mapped memory. The memory of `peer` is at memory[peer], in the layout
  /// of Geometry.
  void make_direct_endpoints(const std::vector<char*>& memory, LinkKind kind = LinkKind::direct);
  /// Makes the endpoints of links over a proxy.
  /// \param mine    this rank's memory, in the layout of Geometry
  /// \param told    memory in which the proxies of peers write, in the layout of the beginning of `mine`
  /// \param stages  staging memory of Geometry::stage_bytes() bytes, in which kernels put data for each peer
  /// \param queue   the proxy's queue
  void make_port_endpoints(char* mine, const char* told, char* stages, PortQueue* queue,
                           LinkKind kind = LinkKind::port);
  Endpoint& at(int peer, uint32_t channel) { return endpoints_[size_t(peer) * geometry_.channels + channel]; }

  const Geometry geometry_;
  const Space space_;
  std::vector<Endpoint> endpoints_;  ///< by peer, then by channel
};

}  // namespace chorale::transport
