// These tests check what kernels refuse that no launcher can see.

#include "support.hpp"
#include "transports.hpp"

namespace chorale {
namespace {

using namespace test;

/// Uses a channel that does not exist.
struct TooManyGroups {
  EndpointTable table;
  Stop operator()(const Group& group, const Deadline&) const {
    return table.at(0, group.id).peer == 0 ? Stop::none : Stop::aborted;
  }
};

TEST(Contract, MoreGroupsThanChannelsAreRefusedByTheKernelToo) {
  run_local(1, [](World& world) {
    const auto transport = direct_rendezvous(world, rings(2, 1, 16));
    launch(*transport, TooManyGroups{transport->table()}, {2});
    const std::string said = message_of_error<std::logic_error>(
        [&] { launch(*transport, TooManyGroups{transport->table()}, {3}); });
    EXPECT_EQ(said,
              "more groups than channels: group 2 uses channel 2, and the transport of rank 0 has 2; give it "
              "more max_channels, or launch fewer blocks");
    const EndpointTable second = transport->table().from_channel(1);
    EXPECT_EQ(&second.at(0, 0), &transport->table().at(0, 1));
    EXPECT_EQ(message_of_error<std::logic_error>([&] { second.at(0, 1); }),
              "more groups than channels: group 1 uses channel 2, and the transport of rank 0 has 2; give it "
              "more max_channels, or launch fewer blocks");
    EXPECT_THROW(second.from_channel(1).at(0, 0), std::logic_error);
    EXPECT_THROW(second.from_channel(2), std::logic_error);
  });
}

TEST(Contract, TilesThatASlotDoesNotHoldAreRefusedByTheKernelToo) {
  const auto said_of = [](uint32_t elem, uint64_t tile_bytes) {
    return message_of_error<std::logic_error>([&] {
      run_local(1, [&](World& world) {
        const auto transport = direct_rendezvous(world, rings(1, 2, 64));
        char data[200] = {};
        Leg message = leg_of<char>(data, data + 100, 100);
        message.elem = elem;
        message.tile_bytes = tile_bytes;
        const auto kernel = [&](const Group& group, const Deadline& deadline) {
          return all_gather<char>(group, transport->table(), message, {}, CopyProduce{}, CopyConsume{},
                                  deadline);
        };
        launch(*transport, Call{kernel}, {1});
      });
    });
  };
  EXPECT_EQ(said_of(100, 0),
            "a slot of the ring does not hold a tile: it has 64 bytes, and an element 100; give the "
            "transport more per_peer_bytes, fewer channels or less depth");
  EXPECT_EQ(said_of(1, 65),
            "a slot of the ring does not hold a tile: it has 64 bytes, and Leg::tile_bytes is 65; give the "
            "transport more per_peer_bytes, fewer channels or less depth");
}

TEST(Contract, TilesThatCutElementsAreRefusedByTheKernelToo) {
  run_local(1, [](World& world) {
    const auto transport = direct_rendezvous(world, rings(1, 2, 64));
    float data[16] = {};
    Leg message;
    message.in = data;
    message.bytes = sizeof data;
    message.tile_bytes = 10;
    const std::string said = message_of_error<std::logic_error>([&] {
      launch(*transport, SendKernel<float, CopyProduce>{transport->table(), message, 0, {}}, {1});
    });
    EXPECT_NE(said.find("tile_bytes is not a multiple of the element's size"), std::string::npos) << said;
  });
}

TEST(Contract, ElementsThatAreNoneAreRefusedByTheKernelToo) {
  const auto said = [](uint32_t elem) {
    return message_of_error<std::logic_error>([elem] {
      run_local(1, [elem](World& world) {
        const auto transport = direct_rendezvous(world, with_packets(rings(1, 2, 64), 64));
        float data[16] = {};
        Leg message;
        message.in = message.out = data;
        message.bytes = sizeof data;
        message.elem = elem;
        launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
          return all_to_all<float>(group, transport->table(), message, {}, CopyProduce{}, CopyConsume{},
                                   deadline);
        }},
               {1});
      });
    });
  };
  EXPECT_EQ(
      said(0),
      "Leg::elem is 0, but the elements on the link have 4 bytes: make it a multiple of that, or 1, for "
      "one of them");
  EXPECT_EQ(said(6).find("Leg::elem is 6,"), 0u);
  EXPECT_EQ(said(8), "");
  Leg message;
  message.bytes = 100;
  message.elem = 0;
  EXPECT_EQ(share_of(message, 0, 2).bytes, 64u) << "a kernel's own call comes before";
}

/// Sends over a fabric, whatever the link is.
template <class Ops>
struct SendOver {
  EndpointTable table;
  Leg message;
  Stop operator()(const Group& group, const Deadline& deadline) const {
    return send_tiles<float, Ops>(group, table.at(1, group.id), message, CopyProduce{}, deadline);
  }
};

TEST(Contract, AFabricThatIsNotTheLinksIsRefused) {
  const auto said_over = [](auto fabric, bool proxied) {
    return message_of_error<std::logic_error>([&] {
      run_local(2, [&](World& world) {
        const auto transport = proxied ? port_rendezvous(world, rings(1, 2, 64), ProxyKind::shared_memory)
                                       : direct_rendezvous(world, rings(1, 2, 64));
        float data[16] = {};
        Leg message;
        message.in = data;
        message.bytes = sizeof data;
        if (world.rank() == 0)
          launch(*transport, SendOver<decltype(fabric)>{transport->table(), message}, {1});
      });
    });
  };
  EXPECT_EQ(
      said_over(Direct{}, true),
      "the link of rank 0 to rank 1 needs the fabric Port, but this transfer uses Direct, the default of "
      "send_tiles() and similar functions; let the link choose the fabric: with_link(endpoint, [&](auto "
      "fabric) { "
      "...<T, decltype(fabric)>(...) })");
  EXPECT_EQ(said_over(Port{}, false)
                .find("the link of rank 0 to rank 1 needs the fabric Direct, but this transfer uses Port;"),
            0u);
}

}  // namespace
}  // namespace chorale
