#include "chorale/topology.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "chorale/read_file.hpp"
#include "chorale/usage_error.hpp"
#include "tests/unit/message_of_error.hpp"
#include "tests/unit/topology/random_topology.hpp"

namespace chorale {
namespace {

const std::string pair = R"({"version": 1, "topology": "pair",
"nodes": [
  {"name": "gpu0", "kind": "gpu", "host": "a", "rail": "0", "pod": "p"},
  {"name": "gpu1", "kind": "gpu", "host": "a"},
  {"name": "s", "kind": "switch"}],
"links": [
  {"between": ["gpu0", "s"], "gb_s": [25.0, 24.0], "latency_ns": 500.0},
  {"between": ["gpu1", "s"], "gb_s": 25.0, "latency_ns": [1.0, 2.0]},
  {"from": "gpu1", "to": "gpu0", "gb_s": 7.0, "latency_ns": 0.0}]}
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = pair;
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  return test::message_of_error<UsageError>([&] { parse_topology(text, "t.json"); });
}

TEST(TopologyFile, IsReadAsItWasWritten) {
  const Topology topology = parse_topology(pair, "t.json");
  EXPECT_EQ(topology_text(topology), pair);
  EXPECT_EQ(topology.name, "pair");
  EXPECT_EQ(topology.gpus(), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(topology.nodes[0], (TopologyNode{TopologyNode::Kind::gpu, "gpu0", "a", "0", "p"}));
  EXPECT_EQ(topology.links,
            (std::vector<TopologyLink>{
                {0, 2, 25, 500}, {2, 0, 24, 500}, {1, 2, 25, 1}, {2, 1, 25, 2}, {1, 0, 7, 0}}));
  EXPECT_EQ(topology.link_name(1), "s -> gpu0");
  for (const std::string_view name : shipped_topologies()) {
    const Topology shipped = load_topology(std::string(name));
    EXPECT_EQ(parse_topology(topology_text(shipped), "t.json"), shipped) << name;
  }
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Topology random = test::random_topology(uint32_t(2 + seed % 9), seed);
    EXPECT_EQ(parse_topology(topology_text(random), "t.json"), random) << seed;
  }
}

TEST(TopologyFile, ThePageHasOne) {
  const std::string page = read_file(CHORALE_SOURCE_DIR "/docs/topologies.md");
  const size_t begin = page.find("```json\n") + 8;
  const Topology topology =
      parse_topology(page.substr(begin, page.find("```", begin) - begin), "topologies.md");
  EXPECT_EQ(topology.gpus().size(), 4u);
  const Routes routes(topology);
  EXPECT_EQ(routes.between(0, 3).size(), 3u);
  // The page has all families.
  for (const std::string_view name : shipped_topologies()) {
    const std::string family = "| `" + std::string(name.substr(0, name.find(':') + 1));
    EXPECT_NE(page.find(family), page.npos) << name;
  }
}

TEST(TopologyFile, LeavesBrokenLinksOut) {
  const Topology whole = parse_topology(pair, "t.json");
  const Topology broken = parse_topology(with("\"gb_s\": 7.0", "\"broken\": true, \"gb_s\": 7.0"), "t.json");
  EXPECT_EQ(broken.links.size(), whole.links.size() - 1);
  EXPECT_EQ(broken.nodes, whole.nodes);
  EXPECT_EQ(parse_topology(with("\"gb_s\": 7.0", "\"broken\": false, \"gb_s\": 7.0"), "t.json"), whole);
}

TEST(TopologyFile, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(
      error_of("{"),
      "t.json: this is not JSON: a topology is {\"version\": 1, \"topology\": \"name\", \"nodes\": [...], "
      "\"links\": [...]}");
  EXPECT_EQ(error_of("7"), "t.json: / is 7: an object with version, topology, nodes and links is expected");
  EXPECT_EQ(error_of(with("\"version\": 1", "\"version\": 2")),
            "t.json: /version is 2: 1 is the version that this chorale reads");
  EXPECT_EQ(error_of(with("\"topology\"", "\"topologie\"")),
            "t.json: /topologie is \"pair\": the key is unknown, did you mean 'topology'?");
  EXPECT_EQ(error_of(with("\"topology\": \"pair\",", "")),
            "t.json: /topology is missing: a topology needs it");
  EXPECT_EQ(error_of(R"({"version": 1, "topology": "t", "nodes": 3, "links": []})"),
            "t.json: /nodes is 3: a list is expected");
  EXPECT_EQ(
      error_of(R"({"version": 1, "topology": "t", "nodes": [{"name": "s", "kind": "switch"}], "links": []})"),
      "t.json: /nodes is [{\"name\":\"s\",\"kind\":\"switch\"}]: a node with \"kind\": \"gpu\" is expected");
}

TEST(TopologyFile, SaysWhatIsWrongWithANode) {
  EXPECT_EQ(error_of(with("\"kind\": \"switch\"", "\"kind\": \"swicth\"")),
            "t.json: /nodes/2/kind is \"swicth\": gpu, nic or switch is expected, did you mean 'switch'?");
  EXPECT_EQ(error_of(with(", \"kind\": \"switch\"", "")),
            "t.json: /nodes/2/kind is missing: it is gpu, nic or switch");
  EXPECT_EQ(error_of(with("\"name\": \"s\"", "\"name\": \"gpu1\"")),
            "t.json: /nodes/2/name is \"gpu1\": /nodes/1 has the same name: each node needs its own");
  EXPECT_EQ(error_of(with("\"name\": \"s\"", "\"name\": \"\"")),
            "t.json: /nodes/2/name is \"\": a name with at least one letter is expected");
  EXPECT_EQ(error_of(with("\"host\": \"a\"", "\"host\": 1")),
            "t.json: /nodes/0/host is 1: a name in quotes is expected");
  EXPECT_EQ(error_of(with("\"host\"", "\"hots\"")),
            "t.json: /nodes/0/hots is \"a\": the key is unknown, did you mean 'host'?");
  EXPECT_EQ(error_of(with("{\"name\": \"s\", \"kind\": \"switch\"}", "[]")),
            "t.json: /nodes/2 is []: a node is {\"name\": \"gpu0\", \"kind\": \"gpu\"}");
}

TEST(TopologyFile, SaysWhatIsWrongWithALink) {
  EXPECT_EQ(error_of(with("\"gb_s\": 7.0", "\"gb_s\": 0")),
            "t.json: /links/2/gb_s is 0: a number of GB/s above 0 is expected, at most 1e12; a link that "
            "carries nothing is {..., \"broken\": true}");
  EXPECT_EQ(error_of(with("[25.0, 24.0]", "[25, -24]")),
            "t.json: /links/0/gb_s/1 is -24: a number of GB/s above 0 is expected, at most 1e12");
  EXPECT_EQ(error_of(with("[25.0, 24.0]", "[25, 24, 23]")),
            "t.json: /links/0/gb_s is [25,24,23]: one number or two, [there, back], are expected");
  EXPECT_EQ(
      error_of(with("\"gb_s\": 7.0", "\"gb_s\": [7, 8]")),
      "t.json: /links/2/gb_s is [7,8]: a link with from and to has one direction, so one number is expected");
  EXPECT_EQ(error_of(with("\"latency_ns\": 500.0", "\"latency_ns\": \"500\"")),
            "t.json: /links/0/latency_ns is \"500\": a number of nanoseconds from 0 to 1e9 is expected");
  EXPECT_EQ(error_of(with("\"gb_s\": 7.0, ", "")),
            "t.json: /links/2/gb_s is missing: how many GB/s the link carries in each direction");
  EXPECT_EQ(error_of(with("[\"gpu1\", \"s\"]", "[\"gpu1\", \"gp0\"]")),
            "t.json: /links/1/between/1 is \"gp0\": no node has this name, did you mean 'gpu0'?");
  EXPECT_EQ(error_of(with("[\"gpu1\", \"s\"]", "[\"gpu1\"]")),
            "t.json: /links/1/between is [\"gpu1\"]: the names of two nodes are expected");
  EXPECT_EQ(error_of(with("\"between\": [\"gpu1\", \"s\"], ", "")),
            "t.json: /links/1/between is missing: a link needs it, or from and to");
  EXPECT_EQ(error_of(with("\"from\": \"gpu1\", ", "")),
            "t.json: /links/2/from is missing: a link with to needs it");
  EXPECT_EQ(
      error_of(with("\"from\": \"gpu1\"", "\"between\": [\"gpu1\", \"s\"]")),
      "t.json: /links/2 is {\"between\":[\"gpu1\",\"s\"],\"to\":\"gpu0\",\"gb_s\":7.0,\"latency_n...: a "
      "link has "
      "either between, or from and to");
  EXPECT_EQ(
      error_of(with("[\"gpu1\", \"s\"]", "[\"s\", \"s\"]")),
      "t.json: /links/1 is {\"between\":[\"s\",\"s\"],\"gb_s\":25.0,\"latency_ns\":[1.0,2.0]}: a link from a "
      "node to itself is of no use: name two nodes");
  EXPECT_EQ(error_of(with("\"to\": \"gpu0\"", "\"to\": \"s\"")),
            "t.json: /links/2 is {\"from\":\"gpu1\",\"to\":\"s\",\"gb_s\":7.0,\"latency_ns\":0.0}: /links/1 "
            "also leads "
            "from gpu1 to s: add their rates in one link");
  EXPECT_EQ(error_of(with("\"gb_s\": 7.0", "\"broken\": 1, \"gb_s\": 7.0")),
            "t.json: /links/2/broken is 1: true or false is expected");
}

TEST(TopologyFile, NeedsGpusThatReachOthers) {
  // gpu1 still reaches gpu0, which has no way back.
  EXPECT_EQ(
      error_of(with("\"gb_s\": [25.0, 24.0]", "\"broken\": true, \"gb_s\": 25")),
      "t.json: /nodes/0 is {\"name\":\"gpu0\",\"kind\":\"gpu\",\"host\":\"a\",\"rail\":\"0\",\"pod\":\"p\"}: "
      "this GPU "
      "reaches no other: connect it by links, through switches and NICs alone, or leave it out");
  EXPECT_EQ(error_of(with("\"between\": [\"gpu0\", \"s\"], \"gb_s\": [25.0, 24.0]",
                          "\"from\": \"gpu0\", \"to\": \"gpu1\", \"gb_s\": 9")),
            "");
  std::string one_way = with("\"between\": [\"gpu0\", \"s\"], \"gb_s\": [25.0, 24.0]",
                             "\"from\": \"gpu0\", \"to\": \"gpu1\", \"gb_s\": 9");
  one_way.replace(one_way.find("\"from\": \"gpu1\", \"to\": \"gpu0\""), 28,
                  "\"from\": \"gpu1\", \"to\": \"gpu0\", \"broken\": true");
  EXPECT_EQ(error_of(one_way),
            "t.json: /nodes/1 is {\"name\":\"gpu1\",\"kind\":\"gpu\",\"host\":\"a\"}: this GPU reaches no "
            "other: connect "
            "it by links, through switches and NICs alone, or leave it out");
  EXPECT_EQ(error_of(R"({"version": 1, "topology": "t", "nodes": [
    {"name": "a", "kind": "gpu"}, {"name": "b", "kind": "gpu"}, {"name": "c", "kind": "gpu"}],
    "links": [{"between": ["a", "b"], "gb_s": 1}, {"from": "c", "to": "a", "gb_s": 1}]})"),
            "t.json: /nodes/2 is {\"name\":\"c\",\"kind\":\"gpu\"}: no other GPU reaches this one: connect "
            "it by links, "
            "through switches and NICs alone, or leave it out");
  // A machine with one GPU has nobody to reach.
  EXPECT_EQ(
      error_of(R"({"version": 1, "topology": "t", "nodes": [{"name": "a", "kind": "gpu"}], "links": []})"),
      "");
}

TEST(ShippedTopology, HasTheSizesOfItsName) {
  struct Sizes {
    const char* name;
    size_t gpus, nics, switches, links;
  };
  for (const Sizes& of :
       {Sizes{"switch:8", 8, 0, 1, 16}, Sizes{"ring:4", 4, 0, 0, 8}, Sizes{"mesh:4", 4, 0, 0, 12},
        Sizes{"pcie:4", 4, 0, 3, 12}, Sizes{"hosts:2x8/8", 16, 16, 2 + 9, 2 * (16 + 16 + 16 + 8)},
        Sizes{"hosts:4x8/1", 32, 4, 4 + 1, 2 * (32 + 32 + 4)},
        Sizes{"fat_tree:512", 512, 512, 64 + 16 + 8, 2 * (512 * 3 + 16 * 8)}}) {
    SCOPED_TRACE(of.name);
    const Topology topology = load_topology(of.name);
    size_t kinds[3] = {};
    for (const TopologyNode& node : topology.nodes) ++kinds[size_t(node.kind)];
    EXPECT_EQ(topology.name, of.name);
    EXPECT_EQ(kinds[0], of.gpus);
    EXPECT_EQ(kinds[1], of.nics);
    EXPECT_EQ(kinds[2], of.switches);
    EXPECT_EQ(topology.links.size(), of.links);
  }
}

/// The links from a leaf to the spines carry what its NICs do, divided by the oversubscription.
TEST(ShippedTopology, FatTreesAreOversubscribed) {
  for (const auto& [name, expected] : {std::pair{"fat_tree:512", 1600.0},
                                       {"fat_tree:512/1", 1600.0},
                                       {"fat_tree:512/2", 800.0},
                                       {"fat_tree:64/4", 100.0},
                                       {"fat_tree:16/64", 100 / 64.0}}) {
    const Topology topology = load_topology(name);
    double up = 0;
    for (const TopologyLink& link : topology.links)
      if (topology.nodes[link.from].name == "pod0/leaf3" && topology.nodes[link.to].name.starts_with("spine"))
        up += link.gb_s;
    EXPECT_EQ(up, expected) << name;
  }
}

TEST(ShippedTopology, AnUnknownNameListsThem) {
  const auto message = [](const std::string& name) {
    return test::message_of_error<UsageError>([&] { load_topology(name); });
  };
  EXPECT_EQ(message("swich:8"),
            "no topology and no file is called 'swich:8', did you mean 'switch'?: switch:N, ring:N, mesh:N, "
            "pcie:N, hosts:HxG/K, fat_tree:N/O are shipped");
  EXPECT_EQ(message("switch"), "'switch' is no topology: switch:N is expected, where N is from 2 to 64");
  for (const char* const wrong :
       {"switch:1", "switch:65", "switch:8/2", "switch:", "switch:-4", "switch:8 ", "ring:2", "pcie:3",
        "hosts:2x8/3", "hosts:2", "hosts:1x8", "hosts:65x64", "fat_tree:12", "fat_tree:64/0",
        "fat_tree:64/2/2", "switch:99999999999999999999"}) {
    EXPECT_NE(message(wrong).find(" is no topology: "), std::string::npos) << wrong << message(wrong);
  }
  EXPECT_THROW(load_topology("no/such.json"), std::runtime_error);
  EXPECT_EQ(load_topology("hosts:2x8").links, load_topology("hosts:2x8/1").links);
}

}  // namespace
}  // namespace chorale
