// These tests simulate plans on machines with a topology.

#include <gtest/gtest.h>

#include <algorithm>

#include "chorale/usage_error.hpp"
#include "tests/unit/message_of_error.hpp"
#include "tests/unit/shipped_plans.hpp"
#include "tests/unit/simulation/made_up.hpp"

namespace chorale {
namespace {

/// Returns a machine whose links carry 4 GB/s, with a topology.
Machine on(const Topology& topology) {
  Machine machine = nothing_takes_time();
  machine.link_put_gb_s = machine.link_get_gb_s = machine.link_copy_engine_gb_s = 4;
  machine.link_ll8_gb_s = machine.link_ll16_gb_s = machine.link_ll128_gb_s = 4;
  machine.topology = topology;
  return machine;
}

/// Returns a topology of GPUs of one host that are behind a switch. Each has links of 4 GB/s.
Topology behind_a_switch(uint32_t gpus) {
  Topology topology = load_topology("switch:" + std::to_string(gpus));
  for (TopologyLink& link : topology.links) link.gb_s = 4;
  return topology;
}

Topology two_hosts() {
  Topology topology = behind_a_switch(2);
  topology.nodes[1].host = "host1";
  return topology;
}

/// A topology whose links have the machine's own rate changes no bit of any result.
TEST(SimulateTopology, ASwitchIsLikeNone) {
  const Machine plain = load_machine(CHORALE_SOURCE_DIR "/plans/machines/nvidia_h200.json");
  size_t plans = 0;
  for (const std::string& path : test::shipped_plans()) {
    const Plan plan = load(path);
    Machine machine = plain;
    // It may have more GPUs than the plan has ranks.
    machine.topology = load_topology("switch:" + std::to_string(plan.ranks() + plans % 2));
    SCOPED_TRACE(path);
    Simulator simulator(plan);
    for (const uint64_t bytes : {uint64_t(1) << 10, uint64_t(1) << 20, uint64_t(1) << 26}) {
      const SimulatedCall call{.bytes = bytes, .dtype = DType::bf16};
      const Simulation with = simulator.simulate(call, machine), without = simulator.simulate(call, plain);
      EXPECT_EQ(with.ns, without.ns);
      ASSERT_EQ(with.links.size(), without.links.size());
      for (size_t rank = 0; rank < with.links.size(); ++rank) {
        EXPECT_EQ(with.links[rank].bytes_out, without.links[rank].bytes_out);
        EXPECT_EQ(with.links[rank].out_busy_ns, without.links[rank].out_busy_ns);
        EXPECT_EQ(with.links[rank].in_busy_ns, without.links[rank].in_busy_ns);
      }
      EXPECT_TRUE(without.topology_busy_ns.empty());
      EXPECT_EQ(with.topology_busy_ns.size(), machine.topology.links.size());
    }
    ++plans;
  }
  EXPECT_GT(plans, 150u);
}

TEST(SimulateTopology, ASlowLinkTakesLonger) {
  Plan plan = two_ranks();
  add_put(plan, 0, 0, 0);
  Topology topology = behind_a_switch(2);
  EXPECT_NEAR(ns_of(plan, on(topology)), 2000, near);
  topology.links[3].gb_s = 1;  // from the switch to GPU 1
  EXPECT_NEAR(ns_of(plan, on(topology)), 8000, near);
  const Simulation result = simulate(plan, {.bytes = made_up_bytes, .dtype = DType::u8}, on(topology));
  EXPECT_NEAR(result.topology_busy_ns[0], 2000, near);
  EXPECT_NEAR(result.topology_busy_ns[3], 8000, near);
  EXPECT_NEAR(result.links[1].in_busy_ns, 8000, near);
  EXPECT_EQ(result.topology_busy_ns[1] + result.topology_busy_ns[2], 0);
  EXPECT_EQ(result.links[0].in_busy_ns, 0);
}

/// Four ranks, of which 0 and 1 put to 2 and 3, over one link between two switches.
TEST(SimulateTopology, RoutesShareALink) {
  Plan plan = two_ranks();
  for (uint32_t rank = 2; rank < 4; ++rank) {
    plan.gpus.push_back(plan.gpus[1]);
    plan.gpus[rank].id = rank;
  }
  for (Gpu& gpu : plan.gpus) {
    gpu.channels.clear();
    for (ThreadBlock& of : gpu.threadblocks) of.channels.clear();
  }
  for (uint32_t rank = 0; rank < 2; ++rank) {
    for (RemoteBuffer& buffer : plan.gpus[rank].remote_buffers) buffer.rank = rank + 2;
    add_put(plan, rank, 0, 0);
  }
  Topology topology = load_topology("pcie:4");
  for (TopologyLink& link : topology.links) link.gb_s = 4, link.latency_ns = 0;
  EXPECT_NEAR(ns_of(plan, on(topology)), 4000, near);
  topology.nodes[2].name = "gpu2";
  // Rank 1 and rank 2 change places, so the pairs are behind the same switches.
  std::swap(topology.nodes[1], topology.nodes[2]);
  for (TopologyLink& link : topology.links)
    for (uint32_t* end : {&link.from, &link.to}) *end = *end == 1 ? 2 : *end == 2 ? 1 : *end;
  EXPECT_NEAR(ns_of(plan, on(topology)), 2000, near);
}

TEST(SimulateTopology, OnlyTheLinksOfGpusTurn) {
  Plan plan = two_ranks();
  add_put(plan, 0, 0, 0);
  Topology topology = behind_a_switch(2);
  topology.nodes.push_back({TopologyNode::Kind::switch_, "other", "host0", "", ""});
  topology.links[2].to = topology.links[3].from = 3;
  topology.links.push_back({2, 3, 4, 0});
  topology.links.push_back({3, 2, 4, 0});
  Machine machine = on(topology);
  machine.link_mixed_gb_s = 2;
  const Simulation result = simulate(plan, {.bytes = made_up_bytes, .dtype = DType::u8}, machine);
  EXPECT_NEAR(result.topology_busy_ns[0], 2000 + 2000 / 3.0, near);  // out of GPU 0
  EXPECT_NEAR(result.topology_busy_ns[3], 2000 + 2000 / 3.0, near);  // into GPU 1
  EXPECT_NEAR(result.topology_busy_ns[4], 2000, near);
}

/// The latency from GPU 0 to GPU 1 is 30, and 500 on the way back.
TEST(SimulateTopology, LatenciesAreAdded) {
  Topology topology = behind_a_switch(2);
  topology.links[0].latency_ns = 10;
  topology.links[3].latency_ns = 20;
  topology.links[1].latency_ns = 200;
  topology.links[2].latency_ns = 300;
  Machine machine = on(topology);
  machine.signal_ns = 800;

  Plan hop = two_ranks();
  add_hop(hop, 0);
  EXPECT_NEAR(ns_of(hop, machine), 830, near);
  add_hop(hop, 1);
  EXPECT_NEAR(ns_of(hop, machine), 830 + 1300, near);

  // A load waits for the request and the answer. Loads of one operation wait together.
  for (uint64_t loads : {1, 2}) {
    Plan get = two_ranks();
    std::vector<Operand> from, to;
    for (uint64_t chunk = 0; chunk < loads; ++chunk) {
      from.push_back(at(1, chunk));
      to.push_back(in(chunk));
    }
    add(block(get), Opcode::get, from, to, {}, ChannelType::memory);
    EXPECT_NEAR(ns_of(get, machine), 530 + double(loads) * 2000, near);
    add(block(get), Opcode::get, from, to, {}, ChannelType::memory);
    EXPECT_NEAR(ns_of(get, machine), 2 * (530 + double(loads) * 2000), near);
  }

  Plan packets = two_ranks();
  packets.protocol = Protocol::LL;
  add(block(packets), Opcode::put_packets, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
  add(block(packets, 1), Opcode::unpack_packets, {scratch(0)}, {out(0)});
  machine.packet_ns = 700;
  EXPECT_NEAR(ns_of(packets, machine), 4000 + 700 + 30, near);

  // The data of a port channel arrive, then the signal; flush waits for the data.
  Plan port = two_ranks();
  add(block(port), Opcode::put_with_signal, {in(0)}, {at(1, 0)}, {0}, ChannelType::port);
  add(block(port, 1), Opcode::wait, {}, {}, {0}, ChannelType::port);
  EXPECT_NEAR(ns_of(port, machine), 2000 + 800 + 30, near);
  Plan flush = two_ranks();
  add(block(flush), Opcode::put, {in(0)}, {at(1, 0)}, {}, ChannelType::port);
  add(block(flush), Opcode::flush, {}, {}, {0}, ChannelType::port);
  EXPECT_NEAR(ns_of(flush, machine), 2000 + 30, near);
}

TEST(SimulateTopology, ASimulatorTakesAnyTopology) {
  Plan plan = two_ranks();
  add_put(plan, 0, 0, 0);
  const SimulatedCall call{.bytes = made_up_bytes, .dtype = DType::u8};
  Topology slow = behind_a_switch(2), swapped = slow;
  slow.links[0].gb_s = 1;
  std::swap(swapped.links[0], swapped.links[1]);
  Simulator simulator(plan);
  EXPECT_NEAR(simulator.simulate(call, on(behind_a_switch(2))).ns, 2000, near);
  EXPECT_NEAR(simulator.simulate(call, on(slow)).ns, 8000, near);
  EXPECT_NEAR(simulator.simulate(call, on({})).ns, 2000, near);
  EXPECT_NEAR(simulator.simulate(call, on(swapped)).topology_busy_ns[1], 2000, near);
}

TEST(SimulateTopology, RefusesPlansThatDoNotFit) {
  Plan plan = two_ranks();
  const auto error = [&](const Topology& topology) {
    return test::message_of_error<UsageError>([&] { ns_of(plan, on(topology)); });
  };
  EXPECT_EQ(error(behind_a_switch(2)), "");
  EXPECT_EQ(error(two_hosts()),
            "plan 'two' has a memory channel from rank 0 to rank 1, but gpu0 and gpu1 of topology 'switch:2' "
            "are on different hosts: connect ranks of different hosts by port channels");
  for (Gpu& gpu : plan.gpus)
    std::erase_if(gpu.channels,
                  [](const ChannelRecord& record) { return record.type == ChannelType::memory; });
  EXPECT_EQ(error(two_hosts()),
            "plan 'two' has a switch channel from rank 0 to rank 1, but gpu0 and gpu1 of topology 'switch:2' "
            "are on different hosts: connect ranks of different hosts by port channels");
  Topology one_way = behind_a_switch(2);
  one_way.links.pop_back();  // from the switch to GPU 1
  EXPECT_EQ(
      error(one_way),
      "plan 'two' has a port channel from rank 0 to rank 1, but no route leads from gpu0 to gpu1 in "
      "topology 'switch:2', where GPUs do not forward data: take a plan whose channels follow the links");
  one_way = behind_a_switch(2);
  one_way.links.erase(one_way.links.begin() + 1);  // from the switch to GPU 0
  plan.gpus[1].channels.clear();
  EXPECT_EQ(
      error(one_way),
      "plan 'two' has a switch channel from rank 0 to rank 1, but no route leads from gpu1 to gpu0 in "
      "topology 'switch:2', where GPUs do not forward data: take a plan whose channels follow the links");
  std::erase_if(plan.gpus[0].channels, [](const ChannelRecord& record) { return is_switched(record.type); });
  EXPECT_EQ(error(one_way), "");  // a port channel needs one direction
  EXPECT_EQ(error(two_hosts()), "");
  plan.gpus.push_back(plan.gpus[1]);
  EXPECT_EQ(error(behind_a_switch(2)),
            "plan 'two' has 3 ranks, but topology 'switch:2' has 2 GPUs: take a plan for fewer ranks, or a "
            "larger topology");
}

TEST(SimulateTopology, AMachineFileHasOne) {
  Machine machine = on(load_topology("hosts:2x4/2"));
  const std::string text = machine_text(machine);
  EXPECT_EQ(parse_machine(text, "m.json").topology, machine.topology);
  machine.topology = {};
  std::string named = machine_text(machine);
  EXPECT_TRUE(parse_machine(named, "m.json").topology.nodes.empty());
  const auto with = [&](const std::string& topology) {
    std::string text = named;
    return text.insert(1, "\"topology\": " + topology + ",");
  };
  EXPECT_EQ(parse_machine(with("\"ring:4\""), "m.json").topology, load_topology("ring:4"));
  const auto error = [&](const std::string& topology) {
    return test::message_of_error<UsageError>([&] { parse_machine(with(topology), "m.json"); });
  };
  EXPECT_EQ(error("\"ring:2\""),
            "m.json: /topology is \"ring:2\": 'ring:2' is no topology: ring:N is expected, where N is from 3 "
            "to 64");
  EXPECT_EQ(error("{\"version\": 1, \"topology\": \"t\", \"nodes\": [{\"name\": 1}], \"links\": []}"),
            "m.json: /topology/nodes/0/name is 1: a name in quotes is expected");
}

}  // namespace
}  // namespace chorale
