#pragma once
/// \file
/// A topology says how the GPUs of a machine are connected: which links there are between GPUs, switches and
/// NICs, and how fast each link is in each direction. The simulator reserves the links that a transfer
/// crosses, and the synthesiser searches for plans that use all of them. docs/topologies.md says how to
/// write one.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chorale {

/// Describes one end of links. Rank r of a plan runs on the GPU number r of Topology::nodes.
struct TopologyNode {
  enum class Kind : uint8_t { gpu, nic, switch_ };
  Kind kind = Kind::gpu;
  std::string name;  ///< unique in its topology
  /// Name the levels that the node belongs to; "" means none. Two GPUs with different hosts cannot map each
  /// other's memory, so only port channels connect them.
  std::string host, rail, pod;

  bool operator==(const TopologyNode&) const = default;
};

/// Describes one direction of a link.
struct TopologyLink {
  uint32_t from = 0, to = 0;  ///< in Topology::nodes
  double gb_s = 0;            ///< 10^9 bytes per second, above 0
  double latency_ns = 0;      ///< added to the times of the machine, which has none between its own GPUs

  bool operator==(const TopologyLink&) const = default;
};

/// A topology keeps these limits. A table of all routes then fits in memory.
inline constexpr uint32_t max_topology_nodes = 1 << 16, max_topology_gpus = 4096,
                          max_topology_links = 1 << 20;

struct Topology {
  std::string name;
  std::vector<TopologyNode> nodes;
  std::vector<TopologyLink> links;  ///< at most one for each pair of nodes and direction

  /// Returns the nodes that are GPUs, by rank.
  std::vector<uint32_t> gpus() const;
  /// Returns a link as "gpu0 -> switch".
  std::string link_name(uint32_t link) const;

  bool operator==(const Topology&) const = default;
};

/// Reads a topology in JSON, for example
///   {"version": 1, "topology": "pair",
///    "nodes": [{"name": "gpu0", "kind": "gpu", "host": "a"}, {"name": "gpu1", "kind": "gpu", "host": "a"}],
///    "links": [{"between": ["gpu0", "gpu1"], "gb_s": 25, "latency_ns": 500}]}
/// A link that is marked as broken is not in the result.
/// \param origin  the name of the file, for messages
/// \throws UsageError with the JSON path, the value and the remedy
Topology parse_topology(std::string_view text, const std::string& origin);

/// Returns names of shipped topologies. Each stands for a family, such as switch:N, of which load_topology()
/// makes all sizes.
std::span<const std::string_view> shipped_topologies();

/// Returns the topology of a file, or the shipped one of that name, such as "switch:8" or "ring:4".
/// \throws UsageError as parse_topology(), or with the names of the shipped topologies
/// \throws std::runtime_error if the file cannot be read
Topology load_topology(const std::string& name_or_path);

/// Returns a text that parse_topology() can read.
std::string topology_text(const Topology&);

/// Holds for each pair of GPUs the links that data crosses between them. GPUs do not forward data, so a route
/// leads through switches and NICs alone.
class Routes {
 public:
  /// Chooses for each pair the route with the least latency, then the fewest links, then the highest rate.
  /// Pairs are spread over routes that are equal in all of these.
  explicit Routes(const Topology&);

  /// Returns the links from one GPU to another, in order, as indices in Topology::links. An empty list means
  /// that no route leads there. `from` and `to` are ranks.
  std::span<const uint32_t> between(uint32_t from, uint32_t to) const {
    const size_t pair = size_t(from) * gpus_ + to;
    return {links_.data() + starts_[pair], links_.data() + starts_[pair + 1]};
  }

 private:
  size_t gpus_;
  std::vector<size_t> starts_;   // by pair of ranks, in links_, and the end of the last
  std::vector<uint32_t> links_;  // of all routes
};

}  // namespace chorale
