// These tests check what builds with assertions (CHORALE_CHECKED) report about messages and channels.

#include "support.hpp"
#include "transports.hpp"

namespace chorale {
namespace {

using namespace test;

/// The parts of a split, which are both numbered from 0, use the same channels: with packets, rings, and
/// tiles alone.
TEST(Contract, TwoGroupsAtATimeOnOneChannelAreTold) {
  enum class How { collective, packets, tiles };
  for (const How how : {How::collective, How::packets, How::tiles}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const std::string said = message_of_error<std::logic_error>([&] {
        run_local(2,
                  [&](World& world) {
                    const auto transport = direct_rendezvous(
                        world, with_packets(rings(2, 2, 64), how == How::packets ? 256 : 0));
                    const EndpointTable table = transport->table();
                    const uint64_t n = 30;
                    const std::vector<uint32_t> in(2 * n);
                    std::vector<uint32_t> out(4 * n);
                    const auto kernel = [&](const Group& block, const Deadline& deadline) {
                      const Split part = block.split(2);
                      const Leg leg = leg_of<uint32_t>(in.data(), &out[2 * n * part.part], n);
                      const Endpoint& e = table.at(1 - table.self, part.group.id);
                      if (how != How::tiles) {
                        return all_gather<uint32_t>(part.group, table, leg, {0, n * sizeof(uint32_t)},
                                                    CopyProduce{}, CopyConsume{}, deadline);
                      }
                      return sendrecv_tiles<uint32_t>(part.group, e, e, leg, leg, CopyProduce{},
                                                      CopyConsume{}, deadline);
                    };
                    launch(*transport, Call{kernel}, {2, seed % 2 ? 4u : 1u});
                  },
                  {.seed = seed});
      });
      EXPECT_NE(said.find(" use channel 0 to rank "), std::string::npos)
          << int(how) << ", seed " << seed << ": " << said;
    }
  }
}

TEST(Contract, RanksThatSendAndReceiveDifferentMessagesAreTold) {
  for (const int what : {0, 1, 2}) {
    const std::string said = message_of_error<std::logic_error>([&] {
      run_local(2, [&](World& world) {
        const auto transport = direct_rendezvous(world, rings(4, 2, 256));
        const bool receives = world.rank() == 1;
        std::vector<char> data(2000);
        Leg message;
        message.in = message.out = data.data();
        message.bytes = what == 0 && receives ? 1999 : 2000;
        message.tile_bytes = what == 1 && receives ? 128 : 256;
        const LaunchConfig config{what == 2 && receives ? 3u : 4u};
        if (receives) {
          recv<char>(*transport, message, 0, {}, config);
        } else {
          send<char>(*transport, message, 1, CopyProduce{}, config);
        }
      });
    });
    // The last group has the share that differs; with other groups all shares differ.
    const char* const told[] = {
        "over channel 3 rank 0 sends 464 bytes, of a message that 4 groups move, and rank 1 receives 463 b",
        "bytes, of a message that 4 groups move, in other tiles, and rank 1 receives ",
        "bytes, of a message that 3 groups move; give both"};
    EXPECT_NE(said.find(told[what]), std::string::npos) << what << ": " << said;
  }
}

/// One rank assumes that a message of packets has 50 elements, and its peer assumes 100.
TEST(Contract, RanksWhosePacketsDifferAreTold) {
  const auto said_of = [](const auto& kernel) {
    return message_of_error<std::logic_error>([&] {
      run_local(2, [&](World& world) {
        const auto transport = direct_rendezvous(world, with_packets(rings(4, 2, 64), 2048));
        std::vector<int32_t> in(100), out(400);
        const Leg message = leg_of<int32_t>(in.data(), out.data(), world.rank() == 0 ? 100 : 50);
        launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
          return kernel(group, transport->table(), message, deadline);
        }},
               {1, 4});
      });
    });
  };
  const auto expect = [](const std::string& said, const char* told) {
    EXPECT_NE(said.find("over channel 0 rank "), std::string::npos) << said;
    EXPECT_NE(said.find(told), std::string::npos) << said;
    EXPECT_NE(said.find("; give both the same length, packets and number of blocks"), std::string::npos)
        << said;
  };
  const Shards apart{0, 400};
  const char* const lengths =
      "rank 0 sends 400 bytes, of a message that 1 groups move, and rank 1 receives 200";
  const auto one_way = [](auto to, auto from) {
    return [](const Group& group, const EndpointTable& table, const Leg& leg, const Deadline& deadline) {
      const Endpoint& e = table.at(1 - table.self, group.id);
      return table.self == 0
                 ? send_packets<typename decltype(to)::type, int32_t>(group, e, leg, {}, deadline)
                 : recv_packets<typename decltype(from)::type, int32_t>(group, e, leg, {}, deadline);
    };
  };
  expect(said_of(one_way(std::type_identity<LL8>{}, std::type_identity<LL8>{})), lengths);
  expect(said_of(one_way(std::type_identity<LL16>{}, std::type_identity<LL16>{})), lengths);
  expect(said_of(one_way(std::type_identity<LL128>{}, std::type_identity<LL128>{})), lengths);
  // The packets have another form, and the messages are as long.
  const auto forms = [&](const Group& group, const EndpointTable& table, Leg leg, const Deadline& deadline) {
    leg.bytes = 200;
    return one_way(std::type_identity<LL16>{}, std::type_identity<LL128>{})(group, table, leg, deadline);
  };
  expect(said_of(forms), "groups move, in other packets, and rank 1 receives 200");

  // The rank that notices it first in a collective reports it.
  const auto both = [&](const auto& kernel) {
    expect(said_of(kernel), "of a message that 1 groups move, and rank ");
  };
  both([&](const Group& group, const EndpointTable& table, const Leg& leg, const Deadline& deadline) {
    return all_to_all<int32_t>(group, table, leg, {0, 400}, CopyProduce{}, CopyConsume{}, deadline);
  });
  both([&](const Group& group, const EndpointTable& table, const Leg& leg, const Deadline& deadline) {
    return all_gather<int32_t>(group, table, leg, apart, CopyProduce{}, CopyConsume{}, deadline);
  });
  both([&](const Group& group, const EndpointTable& table, const Leg& leg, const Deadline& deadline) {
    return reduce_scatter<ReduceOp::sum, int32_t>(group, table, leg, {0, 0}, CopyProduce{}, CopyConsume{},
                                                  deadline);
  });
  both([&](const Group& group, const EndpointTable& table, const Leg& leg, const Deadline& deadline) {
    return all_reduce<ReduceOp::sum, int32_t>(group, table, leg, CopyProduce{}, CopyConsume{}, deadline);
  });
}

/// The sums have two exchanges, in which all shares except the last have the same length.
TEST(Contract, RanksWhoseSumsDifferAtTheirEndAreTold) {
  const std::string said = message_of_error<std::logic_error>([&] {
    run_local(4, [&](World& world) {
      const auto transport = direct_rendezvous(world, with_packets(rings(1, 2, 64), 1 << 14));
      const uint64_t n = 4 * 1024 - (world.rank() == 3 ? 1 : 0);  // the last share is shorter by one
      std::vector<float> in(n), out(n);
      launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
        return all_reduce<ReduceOp::sum, float>(group, transport->table(),
                                                leg_of<float>(in.data(), out.data(), n), CopyProduce{},
                                                CopyConsume{}, deadline);
      }},
             {1, 4});
    });
  });
  for (const char* const length : {"s 16384 bytes, of", "s 16380 bytes, of"}) {
    EXPECT_NE(said.find(length), std::string::npos) << said;
  }
}

/// Nothing is reported if the sender's build does not check, or if the sender is a user's kernel.
TEST(Contract, PacketsOfWhichNothingIsSaidAreTaken) {
  run_local(2, [](World& world) {
    const auto transport = direct_rendezvous(world, with_packets(rings(1, 2, 64), 2048));
    const auto in = message_of<int32_t>(1, 100);
    std::vector<int32_t> out(100);
    launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
      const Endpoint& e = transport->endpoint(1 - world.rank());
      if (world.rank() == 1) {
        return recv_packets<LL16, int32_t>(group, e, leg_of<int32_t>(nullptr, out.data(), 100), {}, deadline);
      }
      const Packets<LL16> to(static_cast<void*>(e.packet_dst + packet_bank<LL16>(1) * e.packet_bytes),
                             detail::packet_flag(1));
      return transfer(group, 400, Mem(static_cast<const void*>(in.data())), to);
    }},
           {1, 4});
    if (world.rank() == 1) {
      EXPECT_MESSAGE(out, in);
    }
  });
}

}  // namespace
}  // namespace chorale
