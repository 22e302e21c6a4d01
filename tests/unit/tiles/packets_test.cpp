// These tests check sends as packets, and windows.

#include <algorithm>

#include "chorale/one_sided_window.hpp"
#include "support.hpp"
#include "transports.hpp"

namespace chorale {
namespace {

using namespace test;

/// Rank 0 sends `calls` messages in one kernel without receiving anything; rank 1 receives.
template <class P, class Produce, class Consume>
struct Stream {
  EndpointTable table;
  const float* in;
  float* out;
  uint64_t n;
  int calls;
  Produce produce;
  Consume consume;

  Stop operator()(const Group& group, const Deadline& deadline) const {
    const Endpoint& e = table.at(1 - table.self, group.id);
    for (int call = 0; call < calls; ++call) {
      Leg message;
      message.in = in + uint64_t(call) * n;
      message.out = out + uint64_t(call) * n;
      message.bytes = n * sizeof(float);
      message.elem = sizeof(float);
      const Leg share = share_of(message, group.id, group.count);
      const Stop stop = table.self == 0 ? send_packets<P, float>(group, e, share, produce, deadline)
                                        : recv_packets<P, float>(group, e, share, consume, deadline);
      if (stop != Stop::none) return stop;
    }
    return Stop::none;
  }
};

template <class P>
void stream(uint64_t n, uint32_t threads, std::optional<uint64_t> seed = {}) {
  const int calls = 7;
  run_local(2,
            [&](World& world) {
              const auto transport = direct_rendezvous(world, with_packets(rings(2, 1, 16), 1600));
              for (uint64_t launches = 0; launches < 3; ++launches) {
                const auto in = message_of<float>(launches, n * calls);
                std::vector<float> out(n * calls);
                const Stream<P, ScaleProduce<float>, AddConsume<float>> kernel{
                    transport->table(), in.data(), out.data(), n, calls, {2.0f}, {1.0f}};
                launch(*transport, kernel, {2, threads});
                if (world.rank() == 0) continue;
                std::vector<float> expected(in);
                for (float& value : expected) value = value * 2 + 1;
                EXPECT_MESSAGE(out, expected) << n << " elements";
              }
            },
            {.seed = seed});
}

TEST(Packets, StreamWithHooks) {
  for (const uint64_t n : {0, 1, 4, 5, 29, 100, 800}) {
    for (const uint32_t threads : {1u, 8u}) {
      stream<LL8>(n, threads);
      stream<LL16>(n, threads);
      stream<LL128>(n, threads);
    }
  }
}

TEST(Packets, LongerThanTheyMayBeAreRefused) {
  const std::string said = message_of_error<std::logic_error>([] { stream<LL16>(900, 1); });
  EXPECT_NE(said.find("longer than the transport's packet_bytes"), std::string::npos) << said;
}

TEST(Seeds, PacketsAreRightInAThousandOrders) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    seed % 2 ? stream<LL8>(1 + seed % 20, 1, seed) : stream<LL128>(1 + seed % 20, 1, seed);
  }
}

/// Rank 0 sends rank 1 messages of all forms in turn over one link. The payload of LL128 messages is
/// nothing but flags of the message after the next, which is the first one that could find it in its bank.
struct FormsInTurn {
  static constexpr uint32_t calls = 12;
  EndpointTable table;
  std::vector<uint32_t>* wrong;

  template <class P>
  Stop one(const Group& group, const Endpoint& e, uint32_t call, const Deadline& deadline) const {
    const uint32_t value = std::is_same_v<P, LL128> ? detail::packet_flag(call + 2) : 100 + call;
    uint32_t words[56];
    for (uint32_t& word : words) word = table.self == 0 ? value : 0;
    Leg message;
    message.in = message.out = words;
    message.bytes = sizeof(words);
    message.elem = sizeof(uint32_t);
    const Stop stop = table.self == 0 ? send_packets<P, uint32_t>(group, e, message, {}, deadline)
                                      : recv_packets<P, uint32_t>(group, e, message, {}, deadline);
    if (stop == Stop::none &&
        !std::all_of(words, words + 56, [value](uint32_t word) { return word == value; }))
      wrong->push_back(call);
    return stop;
  }

  Stop operator()(const Group& group, const Deadline& deadline) const {
    const Endpoint& e = table.at(1 - table.self, group.id);
    for (uint32_t call = 1; call <= calls; ++call) {
      const Stop stop = call % 6 < 2   ? one<LL128>(group, e, call, deadline)
                        : call % 6 < 4 ? one<LL8>(group, e, call, deadline)
                                       : one<LL16>(group, e, call, deadline);
      if (stop != Stop::none) return stop;
    }
    return Stop::none;
  }
};

TEST(Seeds, FormsOfPacketsTakeTurnsOnALink) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<uint32_t> wrong;
    run_local(2,
              [&](World& world) {
                const auto transport = direct_rendezvous(world, with_packets(rings(1, 1, 16), 224));
                launch(*transport, FormsInTurn{transport->table(), &wrong}, {1});
              },
              {.seed = seed});
    ASSERT_EQ(wrong, std::vector<uint32_t>()) << "seed " << seed;
  }
}

/// Every rank sends packets to every rank, round by round, with flags that come from the round and `banks`
/// places for them. There are no credits: a rank that has received its peer's packet of a round knows that
/// the peer has read the previous round.
struct Rounds {
  EndpointTable table;
  uint64_t banks, rounds;
  std::vector<uint64_t>* wrong;

  Stop operator()(const Group& group, const Deadline& deadline) const {
    for (uint64_t round = 1; round <= rounds; ++round) {
      const auto value = [round](int32_t rank) { return round * 100 + uint64_t(rank); };
      for (int32_t peer = 0; peer < table.ranks; ++peer) {
        const Endpoint& e = table.at(peer, group.id);
        const uint64_t mine[2] = {value(table.self), value(table.self)};
        char* const slots = e.packet_dst + round % banks * e.packet_bytes;
        transfer(group, 16, Mem(&mine), Packets<LL16>(slots, uint32_t(round)));
      }
      for (int32_t peer = 0; peer < table.ranks; ++peer) {
        const Endpoint& e = table.at(peer, group.id);
        uint64_t theirs[2] = {};
        const char* const slots = e.packet_src + round % banks * e.packet_bytes;
        const Stop stop = transfer(group, 16, Packets<LL16>(slots, uint32_t(round), &deadline), Mem(&theirs));
        if (stop != Stop::none) return stop;
        if (theirs[0] != value(peer)) wrong->push_back(round);
      }
    }
    return Stop::none;
  }
};

bool rounds_are_right(uint64_t banks, uint64_t seed) {
  bool right = true;
  try {
    run_local(3,
              [&](World& world) {
                const auto transport = direct_rendezvous(world, with_packets(rings(1, 1, 16), 16));
                std::vector<uint64_t> wrong;
                launch(*transport, Rounds{transport->table(), banks, 20, &wrong}, {1});
                if (!wrong.empty()) right = false;
              },
              {.seed = seed});
  } catch (const RunError&) {
    return false;
  }
  return right;
}

TEST(Seeds, PacketsNeedASecondBank) {
  for (uint64_t seed = 0; seed < 1000; ++seed) EXPECT_TRUE(rounds_are_right(2, seed)) << "seed " << seed;
  for (uint64_t seed = 0; seed < 20; ++seed) EXPECT_FALSE(rounds_are_right(1, seed)) << "seed " << seed;
}

/// Every rank puts a message for every rank, signals them, and checks what it received, round by round.
struct Puts {
  WindowView view;
  uint64_t rounds, n;
  std::atomic<int>* wrong;

  Stop operator()(const Group& group, const Deadline& deadline) const {
    const uint64_t self = uint64_t(view.self);
    for (uint64_t round = 1; round <= rounds; ++round) {
      const auto message = [&](uint64_t from, uint64_t to) { return (round * 10 + from) * 10 + to; };
      for (int32_t peer = 0; peer < view.ranks; ++peer) {
        const auto data = message_of<uint32_t>(message(self, uint64_t(peer)), n);
        const uint64_t offset = (self * uint64_t(group.count) + group.id) * n * 4;
        if (peer % 2 == 0) {
          put_signal(group, view, peer, offset, data.data(), n * 4, group.id, 3);
        } else {
          put(group, view, peer, offset, data.data(), n * 4);
          signal_peer(group, view, peer, group.id, 3);
        }
        group.sync();  // `data` is destroyed
      }
      for (int32_t peer = 0; peer < view.ranks; ++peer) {
        const Stop stop = wait_signal_from(group, view, peer, group.id, Cmp::ge, 3 * round, deadline);
        if (stop != Stop::none) return stop;
        if (read_signal(group, view, peer, group.id) < 3 * round) ++*wrong;
        const auto expected = message_of<uint32_t>(message(uint64_t(peer), self), n);
        const char* const here =
            address(view, view.self, (uint64_t(peer) * uint64_t(group.count) + group.id) * n * 4);
        if (std::memcmp(here, expected.data(), n * 4) != 0) ++*wrong;
      }
      // No rank may put again before all have checked.
      const Stop stop = barrier(group, view, group.id, deadline);
      if (stop != Stop::none) return stop;
      signal_all(group, view, view.signal_count - 1);
    }
    return Stop::none;
  }
};

TEST(OneSided, PutsSignalsAndBarriers) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const uint32_t threads = seed % 2 ? 4 : 1;
    std::atomic<int> wrong{0};
    run_local(3,
              [&](World& world) {
                const auto transport = direct_rendezvous(world, rings(2, 1, 16));
                const uint64_t n = 33;
                const OneSidedWindow window = OneSidedWindow::create(world, 3 * 2 * n * 4, 3, 2);
                launch(*transport, Puts{window.view(), 3, n, &wrong}, {2, threads});
              },
              {.seed = seed == 999 ? std::optional<uint64_t>() : seed});
    ASSERT_EQ(wrong, 0) << "seed " << seed;
  }
}

/// Rank 0 has reached a barrier, and signalled rank 1, when the world stops.
TEST(OneSided, AResetTakesBackWhatAStoppedLaunchHasReported) {
  run_local(2, [](World& world) {
    const auto transport = direct_rendezvous(world, rings(1, 2, 64));
    OneSidedWindow window = OneSidedWindow::create(world, 64, 1, 1);
    const WindowView view = window.view();
    std::memset(window.local(), 7, 64);
    const auto run = [&](const auto& kernel) { launch(*transport, Call{kernel}, {1}); };
    const auto meet = [&](const Group& group, const Deadline& deadline) {
      arrive_all(group, view, 0);
      signal_all(group, view, 0);
      return wait_all(group, view, 0, deadline);
    };
    const std::string said = message_of_error<RunError>([&] {
      if (world.rank() == 0) run(meet);
      run([&](const Group& group, const Deadline& deadline) {
        return wait_signal_from(group, view, 0, 0, Cmp::ge, 1, deadline);
      });
      world.abort("on purpose");
      world.check();
    });
    EXPECT_EQ(said, "aborted by rank 1: on purpose");
    world.reset();
    transport->reset();
    window.reset();
    EXPECT_EQ(int(window.local()[63]), 7) << "what has been put stays";
    const auto reported = [&] { return load_relaxed(&view.barrier_at(view.self, 0)->arrived.value); };
    EXPECT_EQ(reported(), 0u);
    for (int from = 0; from < 2; ++from)
      EXPECT_EQ(load_relaxed(&view.signal_at(view.self, from, 0)->value), 0u);
    world.barrier();
    run(meet);
    EXPECT_EQ(reported(), 1u);
  });
}

TEST(OneSided, WhatIsNotThereIsRefused) {
  run_local(1, [](World& world) {
    const OneSidedWindow window = OneSidedWindow::create(world, 64, 2, 1);
    const WindowView view = window.view();
    const Group group;
    char data[65] = {};
    EXPECT_EQ(address(view, 0, 64), reinterpret_cast<char*>(window.local()) + 64);
    EXPECT_EQ(address(view, 0, 65), nullptr);
    EXPECT_THROW(put(group, view, 0, 0, data, 65), std::logic_error);
    EXPECT_THROW(put(group, view, 0, 60, data, 5), std::logic_error);
    EXPECT_NO_THROW(put(group, view, 0, 60, data, 4));
    EXPECT_THROW(address(view, 1, 0), std::logic_error);
    EXPECT_THROW(signal_peer(group, view, 0, 2), std::logic_error);
    EXPECT_THROW(barrier(group, view, 1), std::logic_error);
  });
  run_local(2, [](World& world) {
    EXPECT_THROW(OneSidedWindow::create(world, 64, 2 + uint32_t(world.rank()), 1), RunError);
  });
}

}  // namespace
}  // namespace chorale
