// The shipped topologies are families, and a name says the sizes of one member. Rates and latencies are round
// figures of current hardware. Links within an NVLink domain add no latency, because the parameters of a
// machine contain it.

#include <charconv>
#include <system_error>
#include <utility>

#include "reading.hpp"

namespace chorale {
namespace topology {
namespace {

using Kind = TopologyNode::Kind;

constexpr double nvlink_gb_s = 384;  // link_copy_engine_gb_s of the H200
constexpr double pcie_gb_s = 25, bridge_gb_s = 16, pcie_ns = 150, bridge_ns = 250;
constexpr double nic_gb_s = 50, nic_ns = 400, leaf_ns = 300, spine_ns = 350;

class Builder {
 public:
  explicit Builder(const std::string& name) { topology_.name = name; }

  uint32_t add(Kind kind, std::string name, std::string host = "", std::string rail = "",
               std::string pod = "") {
    topology_.nodes.push_back({kind, std::move(name), std::move(host), std::move(rail), std::move(pod)});
    return uint32_t(topology_.nodes.size() - 1);
  }
  void link(uint32_t one, uint32_t other, double gb_s, double latency_ns) {
    topology_.links.push_back({one, other, gb_s, latency_ns});
    topology_.links.push_back({other, one, gb_s, latency_ns});
  }
  /// Adds the GPUs of the only host.
  std::vector<uint32_t> add_gpus(uint64_t count) {
    std::vector<uint32_t> gpus;
    for (uint64_t gpu = 0; gpu < count; ++gpu)
      gpus.push_back(add(Kind::gpu, fmt::format("gpu{}", gpu), "host0"));
    return gpus;
  }

  /// Adds a host with GPUs behind an NVLink switch. Returns its NICs, which have the rails 0, 1, ...
  std::vector<uint32_t> add_host(uint64_t number, uint64_t gpus, uint64_t nics, const std::string& pod) {
    const std::string host = fmt::format("host{}", number);
    const uint64_t share = gpus / nics;  // GPUs of a NIC
    std::vector<uint32_t> added, result;
    for (uint64_t gpu = 0; gpu < gpus; ++gpu) {
      added.push_back(
          add(Kind::gpu, fmt::format("{}/gpu{}", host, gpu), host, fmt::format("rail{}", gpu / share), pod));
    }
    const uint32_t nvswitch = add(Kind::switch_, host + "/nvswitch", host, "", pod);
    for (const uint32_t gpu : added) link(gpu, nvswitch, nvlink_gb_s, 0);
    for (uint64_t nic = 0; nic < nics; ++nic) {
      result.push_back(
          add(Kind::nic, fmt::format("{}/nic{}", host, nic), host, fmt::format("rail{}", nic), pod));
      for (uint64_t gpu = nic * share; gpu < (nic + 1) * share; ++gpu)
        link(added[gpu], result.back(), nic_gb_s, nic_ns);
    }
    return result;
  }

  Topology take() { return std::move(topology_); }

 private:
  Topology topology_;
};

using Numbers = std::vector<uint64_t>;

Topology behind_a_switch(Builder build, const Numbers& sizes) {
  const std::vector<uint32_t> gpus = build.add_gpus(sizes[0]);
  const uint32_t nvswitch = build.add(Kind::switch_, "nvswitch", "host0");
  for (const uint32_t gpu : gpus) build.link(gpu, nvswitch, nvlink_gb_s, 0);
  return build.take();
}

Topology ring(Builder build, const Numbers& sizes) {
  const std::vector<uint32_t> gpus = build.add_gpus(sizes[0]);
  for (size_t at = 0; at < gpus.size(); ++at)
    build.link(gpus[at], gpus[(at + 1) % gpus.size()], nvlink_gb_s / 2, 0);
  return build.take();
}

Topology mesh(Builder build, const Numbers& sizes) {
  const std::vector<uint32_t> gpus = build.add_gpus(sizes[0]);
  for (size_t one = 0; one < gpus.size(); ++one)
    for (size_t other = one + 1; other < gpus.size(); ++other)
      build.link(gpus[one], gpus[other], nvlink_gb_s / double(gpus.size() - 1), 0);
  return build.take();
}

Topology pcie(Builder build, const Numbers& sizes) {
  const std::vector<uint32_t> gpus = build.add_gpus(sizes[0]);
  const uint32_t bridge = build.add(Kind::switch_, "bridge", "host0");
  for (size_t pair = 0; pair < gpus.size() / 2; ++pair) {
    const uint32_t between = build.add(Kind::switch_, fmt::format("pcie{}", pair), "host0");
    build.link(gpus[2 * pair], between, pcie_gb_s, pcie_ns);
    build.link(gpus[2 * pair + 1], between, pcie_gb_s, pcie_ns);
    build.link(between, bridge, bridge_gb_s, bridge_ns);
  }
  return build.take();
}

/// Makes hosts whose NICs of one number share a leaf switch. A spine joins the leaves at full rate.
Topology hosts(Builder build, const Numbers& sizes) {
  const uint64_t count = sizes[0], nics = sizes[2];
  std::vector<std::vector<uint32_t>> by_host;
  for (uint64_t host = 0; host < count; ++host) by_host.push_back(build.add_host(host, sizes[1], nics, ""));
  std::vector<uint32_t> leaves;
  for (uint64_t rail = 0; rail < nics; ++rail) {
    leaves.push_back(build.add(Kind::switch_, fmt::format("leaf{}", rail), "", fmt::format("rail{}", rail)));
    for (const std::vector<uint32_t>& of_host : by_host)
      build.link(of_host[rail], leaves.back(), nic_gb_s, leaf_ns);
  }
  if (nics == 1) return build.take();
  const uint32_t spine = build.add(Kind::switch_, "spine");
  for (const uint32_t leaf : leaves) build.link(leaf, spine, nic_gb_s * double(count), spine_ns);
  return build.take();
}

/// Makes hosts of 8 GPUs and 8 NICs. A pod is up to 32 hosts, and has a leaf switch for each rail. The spines
/// join the leaves of all pods, at the rate of a leaf's NICs divided by the oversubscription.
Topology fat_tree(Builder build, const Numbers& sizes) {
  constexpr uint64_t rails = 8, most_of_a_pod = 32, most_spines = 8;
  const uint64_t count = sizes[0] / rails, over = sizes[1];
  const uint64_t of_a_pod = std::min(count, most_of_a_pod);
  // A link to a spine has at least the rate of one NIC, if the oversubscription allows it.
  const uint64_t spine_count = std::clamp(of_a_pod / over, uint64_t{1}, most_spines);
  struct Leaf {
    uint32_t node;
    uint64_t nics;
  };
  std::vector<Leaf> leaves;
  for (uint64_t first = 0; first < count; first += of_a_pod) {
    const std::string pod = fmt::format("pod{}", first / of_a_pod);
    const uint64_t end = std::min(count, first + of_a_pod);
    std::vector<std::vector<uint32_t>> by_host;
    for (uint64_t host = first; host < end; ++host)
      by_host.push_back(build.add_host(host, rails, rails, pod));
    for (uint64_t rail = 0; rail < rails; ++rail) {
      leaves.push_back({build.add(Kind::switch_, fmt::format("{}/leaf{}", pod, rail), "",
                                  fmt::format("rail{}", rail), pod),
                        end - first});
      for (const std::vector<uint32_t>& of_host : by_host)
        build.link(of_host[rail], leaves.back().node, nic_gb_s, leaf_ns);
    }
  }
  for (uint64_t at = 0; at < spine_count; ++at) {
    const uint32_t spine = build.add(Kind::switch_, fmt::format("spine{}", at));
    for (const Leaf& leaf : leaves)
      build.link(leaf.node, spine, nic_gb_s * double(leaf.nics) / double(spine_count * over), spine_ns);
  }
  return build.take();
}

/// Describes a family of topologies.
struct Family {
  std::string_view name;
  std::string_view form;        ///< its members; letters stand for numbers
  std::string_view separators;  ///< between the numbers
  size_t least;                 ///< numbers that must be there; the others are 1
  std::string_view rule;
  bool (*allowed)(const Numbers&);
  Topology (*make)(Builder, const Numbers&);
};

constexpr uint64_t most_of_a_host = 64;

bool in(uint64_t value, uint64_t least, uint64_t most) { return value >= least && value <= most; }

const Family families[] = {
    {"switch", "switch:N", "", 1, "N is from 2 to 64",
     [](const Numbers& n) { return in(n[0], 2, most_of_a_host); }, behind_a_switch},
    {"ring", "ring:N", "", 1, "N is from 3 to 64",
     [](const Numbers& n) { return in(n[0], 3, most_of_a_host); }, ring},
    {"mesh", "mesh:N", "", 1, "N is from 2 to 64",
     [](const Numbers& n) { return in(n[0], 2, most_of_a_host); }, mesh},
    {"pcie", "pcie:N", "", 1, "N is even and from 2 to 64",
     [](const Numbers& n) { return in(n[0], 2, most_of_a_host) && n[0] % 2 == 0; }, pcie},
    {"hosts", "hosts:HxG/K", "x/", 2,
     "H hosts, at least 2, have G GPUs each, up to 64, and K NICs, which share them evenly; all have at most "
     "4096 GPUs",
     [](const Numbers& n) {
       return in(n[0], 2, max_topology_gpus) && in(n[1], 1, most_of_a_host) && in(n[2], 1, n[1]) &&
              n[1] % n[2] == 0 && n[0] * n[1] <= max_topology_gpus;
     },
     hosts},
    {"fat_tree", "fat_tree:N/O", "/", 1,
     "N is a multiple of 8 from 16 to 4096, and the oversubscription O is from 1 to 64, or left out for 1",
     [](const Numbers& n) { return in(n[0], 16, max_topology_gpus) && n[0] % 8 == 0 && in(n[1], 1, 64); },
     fat_tree},
};

/// Returns the numbers of a member; none if they are not written as the family's form says.
Numbers numbers_of(const Family& family, std::string_view sizes) {
  Numbers numbers;
  const char* at = sizes.data();
  const char* const end = at + sizes.size();
  while (true) {
    uint64_t number = 0;
    const auto [after, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) return {};
    numbers.push_back(number);
    if (after == end) break;
    if (numbers.size() > family.separators.size() || *after != family.separators[numbers.size() - 1])
      return {};
    at = after + 1;
  }
  if (numbers.size() < family.least) return {};
  numbers.resize(family.separators.size() + 1, 1);
  return numbers;
}

const Family* family_of(std::string_view name) {
  for (const Family& family : families)
    if (name.substr(0, name.find(':')) == family.name) return &family;
  return nullptr;
}

}  // namespace

bool is_shipped(std::string_view name) { return name.find(':') != name.npos && family_of(name); }

Topology shipped(const std::string& name) {
  const Family* const family = family_of(name);
  if (!family) {
    std::vector<std::string_view> names;
    std::string forms;
    for (const Family& known : families) {
      names.push_back(known.name);
      forms += (forms.empty() ? "" : ", ") + std::string(known.form);
    }
    throw UsageError(fmt::format("no topology and no file is called '{}'{}: {} are shipped", name,
                                 did_you_mean(name.substr(0, name.find(':')), names), forms));
  }
  const size_t colon = name.find(':');
  const Numbers numbers =
      colon == name.npos ? Numbers{} : numbers_of(*family, std::string_view(name).substr(colon + 1));
  if (numbers.empty() || !family->allowed(numbers))
    throw UsageError(
        fmt::format("'{}' is no topology: {} is expected, where {}", name, family->form, family->rule));
  return family->make(Builder(name), numbers);
}

}  // namespace topology

std::span<const std::string_view> shipped_topologies() {
  static constexpr std::string_view names[] = {"switch:2",    "switch:4",     "switch:8",      "ring:4",
                                               "ring:8",      "mesh:4",       "mesh:8",        "pcie:4",
                                               "pcie:8",      "hosts:2x8/8",  "hosts:2x8/1",   "hosts:4x8/8",
                                               "hosts:4x8/1", "fat_tree:512", "fat_tree:512/2"};
  return names;
}

}  // namespace chorale
