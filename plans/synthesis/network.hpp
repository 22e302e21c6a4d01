#pragma once
/// \file
/// A Network is what the synthesiser searches on: the GPUs of a group and the connections between them.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "chorale/machine.hpp"
#include "chorale/topology.hpp"

namespace chorale::synthesis {

/// Says which way data flows: from the roots down trees, or up trees to the roots, where it is added up.
enum class Way : uint8_t { down, up };

/// A connection leads from one rank to another, over the links of its route. Ranks forward data; switches and
/// NICs do not copy it.
struct Connection {
  uint32_t from = 0, to = 0;        ///< ranks
  std::span<const uint32_t> links;  ///< in Network::gb_s and Topology::links
  bool port = false;                ///< the ranks are on different hosts, so only port channels connect them

  /// Return the end that is nearer to the root of a tree, and the other one.
  uint32_t near(Way way) const { return way == Way::up ? to : from; }
  uint32_t far(Way way) const { return way == Way::up ? from : to; }
};

struct Network {
  explicit Network(const Topology& topology) : topology(topology), routes(topology) {}
  Network(const Network&) = delete;

  const Topology& topology;  ///< has the GPUs of the ranks alone, by rank
  const Routes routes;
  uint32_t ranks = 0;
  std::vector<Connection> connections;
  /// Hold by link of the topology: the rate of the plans that the search makes, which store to peers where
  /// they can, and the rate of the fastest way to move data, which bounds all plans.
  std::vector<double> gb_s, fastest_gb_s;
};

/// Adds to each link of a connection the time that data takes there.
/// \param bytes     of the data, in any unit
/// \param times_ns  by link of the topology: its time for that unit
void add_times(const Network&, uint32_t connection, double bytes, std::vector<double>& times_ns);

/// Returns the topology of a group: its GPUs by rank, and all switches, NICs and links that are left.
/// \throws UsageError if the group names a GPU twice or one that is not there
Topology topology_of_group(const Topology&, const std::vector<uint32_t>& group);

/// Returns the network of a topology, whose GPUs are the ranks. The topology must outlive it.
/// \throws UsageError if data of one rank cannot reach another
std::unique_ptr<Network> network_of(const Topology&, const Machine&);

}  // namespace chorale::synthesis
