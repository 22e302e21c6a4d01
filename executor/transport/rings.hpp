/// \file
/// What transports whose links have rings of one geometry share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chorale/transport.hpp"
#include "geometry.hpp"

namespace chorale::transport {

/// \throws UsageError if there is no such peer or channel
void check_place(const Transport& transport, int peer, uint32_t channel);

/// \param seen  where kernels read `endpoints`, which are by peer, then by channel
EndpointTable make_table(const Endpoint* seen, const std::vector<Endpoint>& endpoints);

class Rings : public Transport {
 public:
  uint64_t per_peer_bytes() const override { return geometry_.window() * geometry_.channels; }
  uint32_t max_channels() const override { return geometry_.channels; }
  uint32_t depth() const override { return geometry_.depth; }
  uint64_t slot_bytes() const override { return geometry_.slot; }
  Space space() const override { return space_; }
  LinkKind link_kind(int peer) const override { return endpoint(peer, 0).kind; }
  Endpoint endpoint(int peer, uint32_t channel) const override;

  /// Of memory that the host reads.
  EndpointTable table() const override { return make_table(endpoints_.data(), endpoints_); }

 protected:
  Rings(World& world, Space space, const Geometry& geometry)
      : Transport(world, geometry.number), geometry_(geometry), space_(space) {}

  /// All links, with what is alike in them; `kind` is that to other ranks.
  void make_endpoints(LinkKind kind);
  /// The ends of links over memory that is mapped here: that of `peer` is at memory[peer], laid out as
  /// Geometry says.
  void make_direct_endpoints(const std::vector<char*>& memory);
  /// The ends of links over a proxy.
  /// \param mine  this rank's memory, laid out as Geometry says
  /// \param told  as the beginning of `mine`: where the proxies of peers write what they tell
  /// \param stages  of Geometry::stage_bytes(): where kernels leave what goes to each peer
  /// \param queue   of the proxy
  void make_port_endpoints(char* mine, const char* told, char* stages, PortQueue* queue);
  Endpoint& at(int peer, uint32_t channel) { return endpoints_[size_t(peer) * geometry_.channels + channel]; }

  const Geometry geometry_;
  const Space space_;
  std::vector<Endpoint> endpoints_;  ///< by peer, then by channel
};

}  // namespace chorale::transport
