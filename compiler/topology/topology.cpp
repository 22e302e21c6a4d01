#include "chorale/topology.hpp"

#include <array>
#include <filesystem>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "chorale/read_file.hpp"
#include "reading.hpp"

namespace chorale {
namespace topology {
namespace {

using Kind = TopologyNode::Kind;

constexpr std::string_view kinds[] = {"gpu", "nic", "switch"};

/// Returns both directions of a quantity: one number, or [there, back].
std::array<double, 2> both(const Value& value, bool one_way, bool rate) {
  constexpr double most_gb_s = 1e12, most_ns = 1e9;
  const auto number = [&](const Value& of) {
    const double found = of.json.is_number() ? of.json.get<double>() : -1;
    if (rate ? !(found > 0 && found <= most_gb_s) : !(found >= 0 && found <= most_ns)) {
      of.refuse(std::string(rate ? "a number of GB/s above 0 is expected, at most 1e12"
                                 : "a number of nanoseconds from 0 to 1e9 is expected") +
                (rate && found == 0 ? "; a link that carries nothing is {..., \"broken\": true}" : ""));
    }
    return found;
  };
  if (!value.json.is_array()) {
    const double found = number(value);
    return {found, found};
  }
  if (one_way) value.refuse("a link with from and to has one direction, so one number is expected");
  if (value.json.size() != 2) value.refuse("one number or two, [there, back], are expected");
  return {number(value.at(0)), number(value.at(1))};
}

class Reader {
 public:
  explicit Reader(const Value& file) : file_(file) {}

  Topology read() {
    if (!file_.json.is_object())
      file_.refuse("an object with version, topology, nodes and links is expected");
    static constexpr std::string_view known[] = {"version", "topology", "nodes", "links", "notes"};
    file_.only(known);
    const Value version = file_.need("version", "a topology needs it");
    if (version.json != 1) version.refuse("1 is the version that this chorale reads");
    result_.name = file_.need("topology", "a topology needs it").text("a name in quotes is expected");
    const Value nodes = list("nodes", max_topology_nodes);
    for (size_t at = 0; at < nodes.json.size(); ++at) read_node(nodes.at(at));
    const size_t gpus = result_.gpus().size();
    if (gpus == 0) nodes.refuse("a node with \"kind\": \"gpu\" is expected");
    if (gpus > max_topology_gpus)
      nodes.refuse(fmt::format("{} GPUs are too many: at most {} are expected", gpus, max_topology_gpus));
    const Value links = list("links", max_topology_links / 2);
    for (size_t at = 0; at < links.json.size(); ++at) read_link(links.at(at), at);
    check_reach(nodes);
    return std::move(result_);
  }

 private:
  Value list(const char* key, size_t most) const {
    const Value value = file_.need(key, "a topology needs it");
    if (!value.json.is_array()) value.refuse("a list is expected");
    if (value.json.size() > most)
      value.refuse(fmt::format("{} items are too many: at most {} are expected", value.json.size(), most));
    return value;
  }

  void read_node(const Value& value) {
    if (!value.json.is_object()) value.refuse("a node is {\"name\": \"gpu0\", \"kind\": \"gpu\"}");
    static constexpr std::string_view known[] = {"name", "kind", "host", "rail", "pod"};
    value.only(known);
    TopologyNode node;
    const Value name = value.need("name", "a node needs it");
    node.name = name.text("a name in quotes is expected");
    if (node.name.empty()) name.refuse("a name with at least one letter is expected");
    const Value kind = value.need("kind", "it is gpu, nic or switch");
    const auto found =
        std::find(std::begin(kinds), std::end(kinds), kind.text("gpu, nic or switch is expected"));
    if (found == std::end(kinds))
      kind.refuse("gpu, nic or switch is expected" + did_you_mean(kind.json.get<std::string>(), kinds));
    node.kind = Kind(found - kinds);
    for (const auto& [key, level] : {std::pair{"host", &node.host}, {"rail", &node.rail}, {"pod", &node.pod}})
      if (value.has(key)) *level = value.at(key).text("a name in quotes is expected");
    const auto [other, added] = by_name_.try_emplace(node.name, uint32_t(result_.nodes.size()));
    if (!added) {
      name.refuse(
          fmt::format("{}/nodes/{} has the same name: each node needs its own", file_.path, other->second));
    }
    result_.nodes.push_back(std::move(node));
  }

  uint32_t end(const Value& value) const {
    const std::string name = value.text("the name of a node is expected");
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      std::vector<std::string_view> names;
      for (const TopologyNode& node : result_.nodes) names.push_back(node.name);
      value.refuse("no node has this name" + did_you_mean(name, names));
    }
    return found->second;
  }

  /// \param number  its place in the file
  void read_link(const Value& value, size_t number) {
    if (!value.json.is_object())
      value.refuse("a link is {\"between\": [\"gpu0\", \"gpu1\"], \"gb_s\": 25, \"latency_ns\": 500}");
    static constexpr std::string_view known[] = {"between", "from", "to", "gb_s", "latency_ns", "broken"};
    value.only(known);
    const bool one_way = value.has("from") || value.has("to");
    uint32_t from, to;
    if (one_way) {
      if (value.has("between")) value.refuse("a link has either between, or from and to");
      from = end(value.need("from", "a link with to needs it"));
      to = end(value.need("to", "a link with from needs it"));
    } else {
      const Value ends = value.need("between", "a link needs it, or from and to");
      if (!ends.json.is_array() || ends.json.size() != 2) ends.refuse("the names of two nodes are expected");
      from = end(ends.at(0));
      to = end(ends.at(1));
    }
    if (from == to) value.refuse("a link from a node to itself is of no use: name two nodes");
    const auto gb_s =
        both(value.need("gb_s", "how many GB/s the link carries in each direction"), one_way, true);
    std::array<double, 2> latency_ns{};
    if (value.has("latency_ns")) latency_ns = both(value.at("latency_ns"), one_way, false);
    bool broken = false;
    if (value.has("broken")) {
      const Value mark = value.at("broken");
      if (!mark.json.is_boolean()) mark.refuse("true or false is expected");
      broken = mark.json.get<bool>();
    }
    add(value, number, {from, to, gb_s[0], latency_ns[0]}, broken);
    if (!one_way) add(value, number, {to, from, gb_s[1], latency_ns[1]}, broken);
  }

  void add(const Value& value, size_t number, const TopologyLink& link, bool broken) {
    const auto [other, added] = by_ends_.try_emplace(uint64_t(link.from) << 32 | link.to, number);
    if (!added) {
      value.refuse(fmt::format("{}/links/{} also leads from {} to {}: add their rates in one link",
                               file_.path, other->second, result_.nodes[link.from].name,
                               result_.nodes[link.to].name));
    }
    if (!broken) result_.links.push_back(link);
  }

  /// Refuses a GPU that no other GPU reaches, or that reaches no other.
  void check_reach(const Value& nodes) const {
    const std::vector<uint32_t> gpus = result_.gpus();
    if (gpus.size() < 2) return;
    for (const bool back : {false, true}) {
      std::vector<std::vector<uint32_t>> next(result_.nodes.size());
      for (const TopologyLink& link : result_.links)
        back ? next[link.to].push_back(link.from) : next[link.from].push_back(link.to);
      std::vector<uint32_t> seen_by(result_.nodes.size(), ~uint32_t{0});
      for (const uint32_t gpu : gpus) {
        if (!reaches_another(gpu, next, seen_by)) {
          nodes.at(gpu).refuse(
              fmt::format("{}: connect it by links, through switches and NICs alone, or leave it out",
                          back ? "no other GPU reaches this one" : "this GPU reaches no other"));
        }
      }
    }
  }

  bool reaches_another(uint32_t gpu, const std::vector<std::vector<uint32_t>>& next,
                       std::vector<uint32_t>& seen_by) const {
    std::vector<uint32_t> open{gpu};
    seen_by[gpu] = gpu;
    while (!open.empty()) {
      const uint32_t node = open.back();
      open.pop_back();
      for (const uint32_t to : next[node]) {
        if (seen_by[to] == gpu) continue;
        if (result_.nodes[to].kind == Kind::gpu) return true;
        seen_by[to] = gpu;
        open.push_back(to);
      }
    }
    return false;
  }

  const Value& file_;
  Topology result_;
  std::unordered_map<std::string, uint32_t> by_name_;
  std::unordered_map<uint64_t, size_t> by_ends_;  // the place of the link in the file
};

}  // namespace

Topology read(const Value& file) { return Reader(file).read(); }

}  // namespace topology

using topology::Json;

std::vector<uint32_t> Topology::gpus() const {
  std::vector<uint32_t> found;
  for (uint32_t node = 0; node < nodes.size(); ++node)
    if (nodes[node].kind == TopologyNode::Kind::gpu) found.push_back(node);
  return found;
}

std::string Topology::link_name(uint32_t link) const {
  return nodes[links[link].from].name + " -> " + nodes[links[link].to].name;
}

Topology parse_topology(std::string_view text, const std::string& origin) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    throw UsageError(origin +
                     ": this is not JSON: a topology is {\"version\": 1, \"topology\": \"name\", "
                     "\"nodes\": [...], \"links\": [...]}");
  }
  return topology::read({json, origin, ""});
}

Topology load_topology(const std::string& name_or_path) {
  if (topology::is_shipped(name_or_path)) return topology::shipped(name_or_path);
  const bool path = name_or_path.find('/') != name_or_path.npos || name_or_path.ends_with(".json");
  std::error_code ignored;
  if (!path && !std::filesystem::exists(name_or_path, ignored)) return topology::shipped(name_or_path);
  return parse_topology(read_plain_file(name_or_path, topology::most_file_bytes), name_or_path);
}

std::string topology_text(const Topology& topology) {
  std::string text =
      fmt::format("{{\"version\": 1, \"topology\": {},\n\"nodes\": [", json_text(Json(topology.name)));
  const char* before = "\n";
  for (const TopologyNode& node : topology.nodes) {
    text += fmt::format("{}  {{\"name\": {}, \"kind\": \"{}\"", before, json_text(Json(node.name)),
                        topology::kinds[size_t(node.kind)]);
    for (const auto& [key, level] : {std::pair{"host", &node.host}, {"rail", &node.rail}, {"pod", &node.pod}})
      if (!level->empty()) text += fmt::format(", \"{}\": {}", key, json_text(Json(*level)));
    text += "}";
    before = ",\n";
  }
  text += "],\n\"links\": [";
  std::unordered_map<uint64_t, size_t> by_ends;
  for (size_t at = 0; at < topology.links.size(); ++at)
    by_ends[uint64_t(topology.links[at].from) << 32 | topology.links[at].to] = at;
  before = "\n";
  for (size_t at = 0; at < topology.links.size(); ++at) {
    const TopologyLink& link = topology.links[at];
    const auto found = by_ends.find(uint64_t(link.to) << 32 | link.from);
    const bool one_way = found == by_ends.end();
    if (!one_way && found->second < at) continue;  // is written
    const TopologyLink& back = one_way ? link : topology.links[found->second];
    const auto quantity = [](double there, double back) {
      const std::string first = json_text(Json(there));
      return there == back ? first : fmt::format("[{}, {}]", first, json_text(Json(back)));
    };
    const std::string from = json_text(Json(topology.nodes[link.from].name)),
                      to = json_text(Json(topology.nodes[link.to].name));
    text += before + (one_way ? fmt::format("  {{\"from\": {}, \"to\": {}", from, to)
                              : fmt::format("  {{\"between\": [{}, {}]", from, to));
    text += fmt::format(", \"gb_s\": {}, \"latency_ns\": {}}}", quantity(link.gb_s, back.gb_s),
                        quantity(link.latency_ns, back.latency_ns));
    before = ",\n";
  }
  return text + "]}\n";
}

}  // namespace chorale
