// These tests check what the device library guarantees about its types and its host side.

#include <atomic>
#include <cstddef>
#include <thread>
#include <type_traits>

#include "tests/unit/tiles/support.hpp"
#include "tests/unit/tiles/transports.hpp"

namespace chorale {
namespace {

using namespace test;

TEST(Contract, StateLiesOnLinesOfItsOwn) {
  EXPECT_EQ(sizeof(LinkState), 512u);
  EXPECT_EQ(alignof(LinkState), 128u);
  EXPECT_EQ(offsetof(LinkState, cursor), 0u);
  EXPECT_EQ(offsetof(LinkState, data_ready), 128u);
  EXPECT_EQ(offsetof(LinkState, slot_free), 256u);
  EXPECT_EQ(sizeof(Signal), 128u);
  EXPECT_EQ(sizeof(Barrier), 256u);
  EXPECT_EQ(sizeof(PortOrder), 64u);
}

TEST(Contract, WhatKernelsTakeIsCopiedAsBytes) {
  EXPECT_TRUE(std::is_trivially_copyable_v<Endpoint>);
  EXPECT_TRUE(std::is_trivially_copyable_v<EndpointTable>);
  EXPECT_TRUE(std::is_trivially_copyable_v<LinkState>);
  EXPECT_TRUE(std::is_trivially_copyable_v<Leg>);
  EXPECT_TRUE(std::is_trivially_copyable_v<Ctx<>>);
  EXPECT_TRUE(std::is_trivially_copyable_v<PortQueue>);
  EXPECT_TRUE((std::is_trivially_copyable_v<SendRecvKernel<float, ScaleProduce<float>, AddConsume<float>>>));
}

TEST(Contract, OptionsThatCannotBeAreRefusedOnAllRanks) {
  const struct {
    RendezvousOptions options;
    const char* says;
  } cases[] = {
      {{.per_peer_bytes = 0}, "per_peer_bytes is 0: 32 channels of 2 slots of at least 16 bytes need 1024"},
      {{.per_peer_bytes = 1023}, "per_peer_bytes is 1023"},
      {{.per_peer_bytes = 1 << 20, .max_channels = 0}, "max_channels is 0: it must be from 1 to 1024"},
      {{.per_peer_bytes = 1 << 20, .max_channels = 1025}, "max_channels is 1025"},
      {{.per_peer_bytes = 1 << 20, .depth = 0}, "depth is 0: it must be from 1 to 256"},
      {{.per_peer_bytes = 1 << 20, .depth = 257}, "depth is 257"},
      // A sum or product of these wraps round.
      {{.per_peer_bytes = uint64_t{1} << 63, .max_channels = 1, .depth = 1},
       "per_peer_bytes is 9223372036854775808 and packet_bytes 0, the latter on each of 1 channels: with 2 "
       "ranks that is more than can be addressed; use less"},
      {{.per_peer_bytes = ~uint64_t{0}}, "per_peer_bytes is 18446744073709551615"},
      {{.per_peer_bytes = 1 << 20, .packet_bytes = uint64_t{1} << 63}, "packet_bytes 9223372036854775808"},
      {{.per_peer_bytes = 1 << 20, .packet_bytes = ~uint64_t{0}}, "packet_bytes 18446744073709551615"},
      {{.per_peer_bytes = 1 << 20, .max_channels = 1024, .packet_bytes = uint64_t{1} << 52},
       "packet_bytes 4503599627370496, the latter on each of 1024 channels"},
      {{.per_peer_bytes = uint64_t{1} << 33, .max_channels = 1, .depth = 2},
       "1 channels of 2 slots get slots of 4294967296 bytes, and hooks count the elements of a slot with 32 "
       "bits"},
  };
  for (const auto& one : cases) {
    run_local(2, [&](World& world) {
      const std::string said = message_of_error<UsageError>([&] { direct_rendezvous(world, one.options); });
      EXPECT_NE(said.find(one.says), std::string::npos) << said;
    });
  }
  run_local(2, [](World& world) {
    const auto least = direct_rendezvous(world, {.per_peer_bytes = 1024});
    EXPECT_EQ(least->slot_bytes(), 16u);
    const auto uneven = direct_rendezvous(world, {.per_peer_bytes = 1000, .max_channels = 3, .depth = 3});
    EXPECT_EQ(uneven->slot_bytes(), 96u);
    EXPECT_EQ(uneven->per_peer_bytes(), 864u);
  });
}

TEST(Contract, RanksThatDifferHearOfItAll) {
  run_local(3, [](World& world) {
    RendezvousOptions options = rings(4, 2, 256);
    if (world.rank() == 2) options.depth = 4;
    const std::string said = message_of_error<RunError>([&] { direct_rendezvous(world, options); });
    EXPECT_NE(said.find("rank 0 direct_rendezvous with 2048 bytes for each peer, 4 channels, 2 slots"),
              std::string::npos)
        << said;
    EXPECT_NE(said.find("rank 2 direct_rendezvous with 2048 bytes for each peer, 4 channels, 4 slots"),
              std::string::npos)
        << said;
  });
}

TEST(Contract, RingsAreWhereTheOptionsSay) {
  run_local(3, [](World& world) {
    for (const RingAt at : {RingAt::receiver, RingAt::sender}) {
      RendezvousOptions options = rings(2, 2, 64);
      options.ring_at = at;
      const auto transport = direct_rendezvous(world, options);
      for (int peer = 0; peer < 3; ++peer) {
        const Endpoint e = transport->endpoint(peer, 1);
        // A rank's rings follow its ends of links, the first of which is to rank 0.
        const char* const mine = reinterpret_cast<const char*>(transport->endpoint(0, 0).local);
        const auto here = [mine](const char* ring) {
          return ring > mine && ring < mine + 3 * 2 * (sizeof(LinkState) + 2 * 64);
        };
        EXPECT_EQ(here(e.recv_src), at == RingAt::receiver || peer == world.rank());
        EXPECT_EQ(here(e.send_dst), at == RingAt::sender || peer == world.rank());
      }
    }
    RendezvousOptions options = rings(4, 2, 256);
    if (world.rank() == 1) options.ring_at = RingAt::sender;
    EXPECT_NE(
        message_of_error<RunError>([&] { direct_rendezvous(world, options); }).find("rings at the sender"),
        std::string::npos);
    options.ring_at = RingAt::sender;
    const std::string said =
        message_of_error<UsageError>([&] { port_rendezvous(world, options, ProxyKind::shared_memory); });
    EXPECT_NE(said.find("leave ring_at out"), std::string::npos) << said;
  });
}

TEST(Contract, CheckTransferTestsInOrder) {
  run_local(1, [](World& world) {
    // 4 channels of 2 slots of 96 bytes are 768 bytes per peer.
    const auto transport = direct_rendezvous(world, rings(4, 2, 96));
    const auto said = [&](uint64_t elements, uint64_t size, uint32_t groups, Form form) {
      const std::string text =
          message_of_error<UsageError>([&] { check_transfer(*transport, elements, size, groups, form); });
      if (text.empty()) return "";
      if (text.find("whole number of elements") != std::string::npos) return "elements";
      if (text.find("element_bytes is 0") != std::string::npos) return "no bytes";
      if (text.find("do not fit") != std::string::npos) return "capacity";
      if (text.find("groups for") != std::string::npos) return "groups";
      if (text.find("never ends") != std::string::npos) return "form";
      if (text.find("by turns") != std::string::npos) return "turns";
      return "something else";
    };
    // Everything is wrong at first, and then one thing less at a time.
    EXPECT_STREQ(said(1000, 5, 9, Form::whole), "elements");
    EXPECT_STREQ(said(1000, 4, 9, Form::whole), "capacity");
    EXPECT_STREQ(said(100, 4, 9, Form::whole), "groups");
    EXPECT_STREQ(said(100, 4, 1, Form::whole), "capacity");  // of one channel
    EXPECT_STREQ(said(100, 4, 4, Form::whole), "");
    EXPECT_STREQ(said(1000, 4, 9, Form::send_then_receive), "groups");
    EXPECT_STREQ(said(1000, 4, 4, Form::send_then_receive), "form");

    // Boundaries.
    EXPECT_STREQ(said(0, 4, 1, Form::whole), "");
    EXPECT_STREQ(said(768, 1, 4, Form::whole), "");
    EXPECT_STREQ(said(769, 1, 4, Form::whole), "capacity");
    EXPECT_STREQ(said(768, 1, 4, Form::send_then_receive), "");
    EXPECT_STREQ(said(769, 1, 4, Form::send_then_receive), "form");
    EXPECT_STREQ(said(0, 1, 0, Form::one_way), "groups");
    EXPECT_STREQ(said(0, 1, 4, Form::one_way), "");
    EXPECT_STREQ(said(0, 1, 5, Form::one_way), "groups");
    EXPECT_STREQ(said(1 << 30, 8, 1, Form::one_way), "");  // a ring takes messages of any length
    EXPECT_STREQ(said(1 << 30, 8, 1, Form::interleaved), "");
    EXPECT_STREQ(said(0, 0, 1, Form::one_way), "no bytes");

    const auto single = direct_rendezvous(world, rings(1, 1, 96));
    EXPECT_NO_THROW(check_transfer(*single, 96, 1, 1, Form::interleaved));
    EXPECT_THROW(check_transfer(*single, 97, 1, 1, Form::interleaved), UsageError);
    EXPECT_NO_THROW(check_transfer(*single, 48, DType::bf16, 1, Form::interleaved));
    EXPECT_THROW(check_transfer(*single, 49, DType::bf16, 1, Form::interleaved), UsageError);
  });
}

TEST(Contract, LaunchersRefuseBeforeAnythingIsSent) {
  run_local(1, [](World& world) {
    const auto transport = direct_rendezvous(world, rings(2, 2, 256));
    char byte = 0;
    EXPECT_THROW(send(*transport, &byte, 1, 1, {}, {1}), UsageError);
    EXPECT_THROW(recv(*transport, &byte, 1, -1, {}, {1}), UsageError);
    EXPECT_THROW(send(*transport, &byte, 1, 0, {}, {3}), UsageError);
    char* const nothing = nullptr;
    EXPECT_EQ(message_of_error<UsageError>([&] { send(*transport, nothing, 5, 0, {}, {1}); }),
              "send: the buffer of 5 bytes is null");
    EXPECT_EQ(message_of_error<UsageError>([&] { recv(*transport, nothing, 5, 0, {}, {1}); }),
              "recv: the buffer of 5 bytes is null");
    EXPECT_THROW(send(*transport, &byte, 1, 0, {}, {0}), UsageError);
    EXPECT_THROW(transport->endpoint(0, 2), UsageError);
    EXPECT_THROW(transport->endpoint(1, 0), UsageError);
    EXPECT_EQ(load_relaxed(&transport->endpoint(0, 0).local->cursor.sent), 0u);
  });
}

TEST(Contract, LaunchersRefuseMessagesThatCannotBe) {
  run_local(1, [](World& world) {
    const auto transport = direct_rendezvous(world, rings(2, 2, 256));
    std::vector<char> data(1024);
    const auto said = [&](uint64_t bytes, uint32_t elem, uint64_t tile_bytes) {
      Leg message;
      message.in = message.out = data.data();
      message.bytes = bytes;
      message.elem = elem;
      message.tile_bytes = tile_bytes;
      const std::string sent =
          message_of_error<UsageError>([&] { send<float>(*transport, message, 0, CopyProduce{}, {1}); });
      EXPECT_EQ(
          message_of_error<UsageError>([&] { recv<float>(*transport, message, 0, CopyConsume{}, {1}); }),
          sent);
      return sent;
    };
    EXPECT_EQ(said(64, 0, 0),
              "Leg::elem is 0: it is the bytes of an element, or 1 for those of the launcher's type");
    EXPECT_EQ(said(60, 6, 0),
              "Leg::elem is 6, but the elements on the link have 4 bytes: make it a multiple of that, or 1, "
              "for one of them");
    EXPECT_EQ(
        said(66, 4, 0),
        "a message of 66 bytes is no whole number of elements of 4 bytes: make Leg::bytes a multiple of "
        "Leg::elem");
    EXPECT_EQ(
        said(66, 1, 0),
        "a message of 66 bytes is no whole number of elements of 4 bytes: make Leg::bytes a multiple of "
        "Leg::elem");
    EXPECT_EQ(
        said(1024, 4, 272),
        "Leg::tile_bytes is 272, but a slot holds 256: use smaller tiles, 0 for one per slot, or give the "
        "transport more per_peer_bytes, or fewer channels or slots");
    // Hooks would get vectors that begin within an element.
    EXPECT_EQ(said(64, 4, 10),
              "Leg::tile_bytes is 10, which cuts elements of 4 bytes: make it a multiple of Leg::elem");
    EXPECT_EQ(load_relaxed(&transport->endpoint(0, 0).local->cursor.sent), 0u);
    Leg message;
    message.in = message.out = data.data();
    message.bytes = 512;
    message.tile_bytes = 256;
    send<float>(*transport, message, 0, CopyProduce{}, {1});
    recv<float>(*transport, message, 0, CopyConsume{}, {1});
  });
}

/// The byte counts of such messages would wrap round to small numbers, and these bytes would be sent.
TEST(Contract, MessagesLongerThanCanBeAddressedAreRefused) {
  run_local(1, [](World& world) {
    const auto transport = direct_rendezvous(world, rings(1, 2, 256));
    float data[1] = {}, out[1] = {};
    const uint64_t n = (uint64_t{1} << 62) + 1;
    const char* const says = "4611686018427387905 elements of 4 bytes are more than any memory holds";
    EXPECT_EQ(message_of_error<UsageError>([&] { send(*transport, data, n, 0, CopyProduce{}, {1}); }), says);
    EXPECT_EQ(message_of_error<UsageError>([&] { recv(*transport, data, n, 0, CopyConsume{}, {1}); }), says);
    EXPECT_EQ(message_of_error<UsageError>([&] { sendrecv(*transport, data, out, n, 0, -1, {}, {}, {1}); }),
              says);
    Leg message;
    message.in = data;
    message.bytes = ~uint64_t{0};
    EXPECT_EQ(message_of_error<UsageError>([&] { send<char>(*transport, message, 0, CopyProduce{}, {1}); }),
              "18446744073709551615 elements of 1 bytes are more than any memory holds");
    EXPECT_EQ(load_relaxed(&transport->endpoint(0, 0).local->cursor.sent), 0u);
  });
}

TEST(Contract, LaunchesOfMoreThreadsThanCanBeCountedAreRefused) {
  run_local(1, [](World& world) {
    const auto transport = direct_rendezvous(world, rings(1, 1, 16));
    std::atomic<int> runs{0};
    const auto kernel = [&](const Group&, const Deadline&) {
      ++runs;
      return Stop::none;
    };
    EXPECT_EQ(message_of_error<UsageError>([&] {
                launch(*transport, kernel, {1u << 22, 1024});
              }),
              "the launch has 4194304 blocks of 1024 threads, expected at most 1073741824 threads in all: "
              "use fewer blocks");
    EXPECT_THROW(launch(*transport, kernel, {3u << 30, 1}), UsageError);
    launch(*transport, kernel, {3, 2});
    EXPECT_EQ(runs, 6);
  });
}

TEST(Contract, ATransportBelongsToOneStream) {
  run_local(1, [](World& world) {
    const auto transport = direct_rendezvous(world, rings(1, 1, 16));
    int one = 0, other = 0;
    { const Transport::Use use(*transport, &one); }
    {
      const Transport::Use use(*transport, &one);
      EXPECT_THROW(Transport::Use(*transport, &one), UsageError) << "while it is in use";
    }
    EXPECT_THROW(Transport::Use(*transport, &other), UsageError);
    transport->hand_over();
    EXPECT_NO_THROW(Transport::Use(*transport, &other));
  });
}

TEST(Contract, ALaunchThatIsRefusedLeavesTheTransportFree) {
  run_local(1, [](World& world) {
    const auto transport = direct_rendezvous(world, rings(1, 1, 16));
    int one = 0, other = 0;
    { const Transport::Use use(*transport, &one); }
    EXPECT_THROW(Transport::Use(*transport, &other), UsageError);
    EXPECT_NO_THROW(Transport::Use(*transport, &one));
  });
}

TEST(Contract, OfThreadsThatLaunchAtOnceOneHasTheTransport) {
  run_local(1, [](World& world) {
    const auto transport = direct_rendezvous(world, rings(1, 1, 16));
    { const Transport::Use first(*transport, nullptr); }
    std::atomic<int> users{0};
    std::atomic<bool> shared{false};
    std::atomic<int> there{0};
    const auto use = [&] {
      for (++there; there < 2;) std::this_thread::yield();
      for (int times = 0; times < 2000; ++times) {
        try {
          const Transport::Use mine(*transport, nullptr);
          if (users.fetch_add(1) != 0) shared = true;
          std::this_thread::yield();
          users.fetch_sub(1);
        } catch (const UsageError&) {
        }
      }
    };
    std::thread beside(use);
    use();
    beside.join();
    EXPECT_FALSE(shared);
  });
}

}  // namespace
}  // namespace chorale
