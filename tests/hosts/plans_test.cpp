/// \file
/// Checks that plans over several hosts give the same results as on one.

#include "tests/hosts/harness.hpp"

namespace chorale::test {
namespace {

const std::vector<HostsOfRanks> some_hosts = {
    {0, 1}, {0, 1, 2}, {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 2, 2, 2}};

std::string text_of(const HostsOfRanks& hosts) {
  std::string text;
  for (const int host : hosts) text += std::to_string(host);
  return text;
}

/// Gives sizes of an eager message and of a rendezvous. No part is a whole unit.
const std::vector<uint64_t> elements = {1, 5, 1024, 9001, 70001};

void expect_right(const Plan& plan, const HostsOfRanks& hosts, const std::vector<PacketForm>& forms,
                  const std::vector<uint64_t>& sizes = elements) {
  const std::vector<int> codes = on_hosts(hosts, [&](World& world) {
    Executor executor(world);
    for (const Where where : {Where::apart, Where::in_place, Where::allocated}) {
      for (const PacketForm form : forms) {
        for (const uint64_t bytes : some_sizes(plan, sizes)) {
          const std::string wrong =
              run_rank(world, executor, plan, {.bytes = bytes, .where = where, .packet = form});
          if (!wrong.empty())
            return verdict(plan.name + ", " + std::to_string(bytes) + " bytes, " +
                           std::to_string(int(where)) + ": " + wrong);
        }
      }
    }
    return 0;
  });
  EXPECT_EQ(codes, all_well(hosts)) << plan.name << " on hosts " << text_of(hosts);
}

TEST_P(Hosts, put_signal_wait_and_flush) {
  for (const HostsOfRanks& hosts : some_hosts) {
    for (const auto& [joined, chunks] :
         std::vector<std::pair<std::string, std::string>>{{"0", "1"}, {"1", "3"}}) {
      const Plan plan =
          make_plan("hosts_put_signal_flush", int(hosts.size()), {{"joined", joined}, {"chunks", chunks}});
      expect_right(plan, hosts, {PacketForm::ll8});
    }
  }
}

TEST_P(Hosts, packets) {
  for (const HostsOfRanks& hosts : some_hosts) {
    expect_right(make_plan("hosts_put_packets", int(hosts.size())), hosts,
                 {PacketForm::ll8, PacketForm::ll16, PacketForm::ll128});
  }
}

TEST_P(Hosts, what_was_flushed_may_be_overwritten) {
  for (const HostsOfRanks& hosts : some_hosts)
    expect_right(make_plan("hosts_reuse_after_flush", int(hosts.size())), hosts, {PacketForm::ll8},
                 {1, 777, 70001});
}

TEST_P(Hosts, messages_over_the_ends_of_parts) {
  for (const HostsOfRanks& hosts : some_hosts)
    expect_right(make_plan("hosts_gather_and_give", int(hosts.size())), hosts, {PacketForm::ll8},
                 {1, 5, 1003});
}

/// The message is longer than a sender may have in flight.
TEST_P(Hosts, large_messages) {
  expect_right(make_plan("hosts_put_signal_flush", 3, {{"chunks", "5"}}), {0, 1, 2}, {PacketForm::ll8},
               {2000001});
}

/// The plan uses memory channels within a host and port channels between hosts.
TEST_P(Hosts, two_levels) {
  for (const HostsOfRanks& hosts : std::vector<HostsOfRanks>{{0, 0, 1, 1}, {0, 0, 0, 0, 1, 1, 1, 1}}) {
    for (const char* const inplace : {"0", "1"}) {
      expect_right(make_plan("allreduce_two_level", int(hosts.size()), {{"inplace", inplace}}), hosts,
                   {PacketForm::ll8});
    }
  }
  expect_right(make_plan("allreduce_two_level", 6, {{"gpus_per_node", "2"}}), {0, 0, 1, 1, 2, 2},
               {PacketForm::ll8});
}

TEST_P(Hosts, plans_of_mscclpp) {
  const std::filesystem::path folder = source_dir() / "../shared/mscclpp-plans";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  const HostsOfRanks two = {0, 1}, four = {0, 0, 1, 1}, eight = {0, 0, 0, 0, 1, 1, 1, 1};
  const std::vector<std::pair<std::string, HostsOfRanks>> plans = {
      {"multi_node-allgather__gpn2", four},
      {"multi_node-allgather__gpn4", eight},
      {"multi_node-allgather_pkt__gpn2", four},
      {"multi_node-allgather_pkt__gpn4", eight},
      {"multi_node-reducescatter__gpn2", four},
      {"multi_node-reducescatter__gpn4", eight},
      {"multi_node-allgather_tbg__n4-gpn2-tbg1", four},
      {"multi_node-send_recv__nn2-gpn1-m0x0-i4", two}};
  for (const auto& [name, hosts] : plans) {
    expect_right(load((folder / (name + ".json")).string()), hosts, {PacketForm::ll8, PacketForm::ll16},
                 {4, 1028, 9001});
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, Hosts, both_transports, transport_name);

}  // namespace
}  // namespace chorale::test
