// These tests check that a stop in the middle leaves nothing behind that a peer would mistake for data.

#include "support.hpp"
#include "transports.hpp"

namespace chorale {
namespace {

using namespace test;

/// Aborts the world when it makes element `at`.
struct AbortingProduce {
  World* world;
  uint64_t at;

  template <class X>
  Vector<uint32_t> produce(const Ctx<X>& ctx) const {
    if (ctx.index <= at && at < ctx.index + ctx.count) world->abort("on purpose");
    return load_elements<uint32_t>(ctx.in, ctx.index, ctx.count);
  }
};

TEST(Stop, AbortInTheMiddle) {
  for (const uint32_t threads : {1u, 8u}) {
    for (const uint64_t at : {0, 100, 1999}) {
      run_local(2, [&](World& world) {
        const auto transport = direct_rendezvous(world, rings(2, 2, 256));
        const uint64_t n = 2000;
        const auto exchange = [&](uint64_t message) {
          const auto sent = message_of<uint32_t>(message, n);
          if (world.rank() == 0) {
            send(*transport, sent.data(), n, 1, {}, {2, threads});
            return;
          }
          std::vector<uint32_t> got(n);
          recv(*transport, got.data(), n, 0, {}, {2, threads});
          EXPECT_MESSAGE(got, sent);
        };
        exchange(1);
        world.barrier();  // the abort must not come into this one
        const uint64_t received = load_relaxed(&transport->endpoint(0, 0).local->cursor.received);

        const auto data = message_of<uint32_t>(2, n);
        std::vector<uint32_t> out(n);
        std::string said;
        try {
          if (world.rank() == 0) {
            send(*transport, data.data(), n, 1, AbortingProduce{&world, at}, {2, threads});
          } else {
            recv(*transport, out.data(), n, 0, {}, {2, threads});
          }
        } catch (const RunError& error) {
          EXPECT_EQ(error.reason, RunError::Reason::aborted);
          said = error.what();
        }
        EXPECT_NE(said.find("on purpose"), std::string::npos) << said;
        if (world.rank() == 1 && at == 0) {
          EXPECT_EQ(load_relaxed(&transport->endpoint(0, 0).local->cursor.received), received);
        }

        world.reset();
        EXPECT_THROW(exchange(3), UsageError) << "the links hold what was left";
        transport->reset();
        exchange(4);
        exchange(5);
      });
    }
  }
}

/// Rank 0 waits for data that does not come, until its time limit. Rank 1 makes progress meanwhile.
struct Impatient {
  EndpointTable table;
  std::atomic<bool>* over;
  char* out;
  Stop* stops;  // by thread of rank 0

  Stop operator()(const Group& group, const Deadline& world) const {
    const Endpoint& e = table.at(1 - table.self, 0);
    if (table.self == 1) {
      while (!*over) group.park([]() { return true; }, 1);
      return Stop::none;
    }
    Deadline deadline = world;
    deadline.ticks = 2'000'000;
    Leg leg;
    leg.out = out;
    leg.in = out;
    leg.bytes = 1000;
    Stop stop = recv_tiles<char>(group, e, leg, CopyConsume{}, deadline);
    // The ring takes two tiles, then there is no credit.
    if (stop == Stop::timed_out) stop = send_tiles<char>(group, e, leg, CopyProduce{}, deadline);
    stops[group.rank] = stop;
    group.sync();
    if (group.leader()) *over = true;
    return Stop::none;
  }
};

TEST(Stop, TimeoutIsAlikeInAllThreadsAndAdvancesNothing) {
  for (const uint32_t threads : {1u, 8u}) {
    run_local(2, [&](World& world) {
      static std::atomic<bool> over;
      if (world.rank() == 0) over = false;
      const auto transport = direct_rendezvous(world, rings(1, 2, 256));
      std::vector<char> out(1000);
      std::vector<Stop> stops(threads, Stop::none);
      launch(*transport, Impatient{transport->table(), &over, out.data(), stops.data()}, {1, threads});
      const LinkState& link = *transport->endpoint(1 - world.rank(), 0).local;
      EXPECT_EQ(load_relaxed(&link.cursor.sent), 0u);
      EXPECT_EQ(load_relaxed(&link.cursor.received), 0u);
      EXPECT_EQ(load_relaxed(&link.slot_free.value), 0u);
      if (world.rank() == 0) {
        EXPECT_EQ(stops, std::vector<Stop>(threads, Stop::timed_out));
      } else {
        EXPECT_EQ(load_relaxed(&link.data_ready.value), 512u) << "the two tiles that there was room for";
      }
    });
  }
}

/// Holds links over a proxy that accepts no more orders, so every signal of a rank stops. Rank 0 is at
/// one end of each, and no rank at the other. The work of peers is done beforehand.
struct FullOfOrders {
  static constexpr uint64_t slot = 256;

  std::vector<char> ring = std::vector<char>(2 * slot);
  PortOrder orders[2] = {};
  uint64_t head = 2, tail = 0;
  PortQueue queue;
  LinkState states[2] = {};
  std::vector<Endpoint> links;

  FullOfOrders() {
    queue.orders = orders;
    queue.slots = 2;
    queue.head = &head;
    queue.tail = &tail;
    for (int peer = 0; peer < 2; ++peer) {
      Endpoint e;
      e.self = 0;
      e.peer = peer;
      e.ranks = 2;
      e.kind = LinkKind::port;
      e.channels = 1;
      e.depth = 2;
      e.window = ring.size();
      e.send_dst = ring.data();
      e.recv_src = ring.data();
      e.told = e.local = &states[peer];
      e.port = &queue;
      links.push_back(e);
    }
  }
  FullOfOrders(const FullOfOrders&) = delete;

  EndpointTable table() const { return {links.data(), 2, 0, 1}; }
};

/// Describes a call that one rank may make there. Messages are as long as a slot, and the message that it
/// takes has arrived.
struct WithoutRoom {
  const char* what;
  std::function<Stop(const Group&, const EndpointTable&, const Leg&, const Deadline&)> call;
};

std::vector<WithoutRoom> without_room() {
  return {
      {"send_tiles",
       [](const Group& group, const EndpointTable& table, const Leg& leg, const Deadline& deadline) {
         return send_tiles<char, Port>(group, table.at(1, 0), leg, CopyProduce{}, deadline);
       }},
      {"recv_tiles",
       [](const Group& group, const EndpointTable& table, const Leg& leg, const Deadline& deadline) {
         return recv_tiles<char, Port>(group, table.at(1, 0), leg, CopyConsume{}, deadline);
       }},
      {"forward_tiles",
       [](const Group& group, const EndpointTable& table, const Leg& leg, const Deadline& deadline) {
         return forward_tiles<char, Port, Port>(group, table.at(0, 0), table.at(1, 0), leg, CopyConsume{},
                                                deadline);
       }},
      {"all_to_all",
       [](const Group& group, const EndpointTable& table, const Leg& leg, const Deadline& deadline) {
         return all_to_all<char>(group, table, leg, {0, 0}, CopyProduce{}, CopyConsume{}, deadline);
       }},
      {"the receiving half of a collective",
       [](const Group& group, const EndpointTable& table, const Leg& leg, const Deadline& deadline) {
         detail::Positions positions;
         detail::Exchange<char, None> exchange(group, table, detail::link_teams(group, table.ranks), leg, 1,
                                               positions, deadline, nullptr);
         const Stop stop = exchange.receive_each([&](int32_t) { return leg; }, 0, 0, CopyConsume{});
         return stop != Stop::none ? stop : exchange.end();
       }},
      {"all_to_all_v",
       [](const Group& group, const EndpointTable& table, const Leg& leg, const Deadline& deadline) {
         static constexpr int64_t none[] = {0, 0};
         Counts<> counts;
         counts.send = none;  // uses a slot anyway, for the count
         return all_to_all_v<char>(group, table, leg, counts, CopyProduce{}, CopyConsume{}, deadline);
       }},
      {"send_message",
       [](const Group& group, const EndpointTable& table, const Leg& leg, const Deadline& deadline) {
         return send_message<Port>(group, table.at(1, 0), leg.in, 100, deadline);
       }},
      {"recv_message",
       [](const Group& group, const EndpointTable& table, const Leg& leg, const Deadline& deadline) {
         uint64_t sent = 0;
         return recv_message<Port>(group, table.at(1, 0), leg.out, 100, deadline, sent);
       }},
  };
}

TEST(Stop, OrdersThatFindNoRoomAdvanceNothing) {
  for (const uint32_t threads : {1u, 8u}) {
    for (const WithoutRoom& work : without_room()) {
      FullOfOrders full;
      const detail::MessageHead head{100, 1};
      std::memcpy(full.ring.data(), &head, sizeof head);
      std::vector<char> in(FullOfOrders::slot), out(FullOfOrders::slot);
      std::vector<Stop> stops(threads, Stop::none);
      std::atomic<uint32_t> ended{0};
      Leg leg;
      leg.in = in.data();
      leg.out = out.data();
      leg.bytes = FullOfOrders::slot;
      for (LinkState& state : full.states) {
        state.data_ready.value = FullOfOrders::slot;
        state.data_ready.note = detail::Note(0, 1, FullOfOrders::slot, FullOfOrders::slot).word;
      }
      run_local(1, [&](World& world) {
        const auto transport = direct_rendezvous(world, rings(1, 2, 256));
        launch(*transport, Call{[&](const Group& block, const Deadline& patient) {
          const auto [part, group] = block.split(2);
          // The other block makes progress meanwhile.
          while (part == 1 && ended != threads) group.park([]() { return true; }, 1);
          if (part == 1) return Stop::none;
          Deadline deadline = patient;
          deadline.ticks = 2'000'000;
          stops[group.rank] = work.call(group, full.table(), leg, deadline);
          ++ended;
          return Stop::none;
        }},
               {2, threads});
      });
      EXPECT_EQ(stops, std::vector<Stop>(threads, Stop::timed_out)) << work.what;
      for (const LinkState& state : full.states) {
        EXPECT_EQ(load_relaxed(&state.cursor.sent), 0u) << work.what;
        EXPECT_EQ(load_relaxed(&state.cursor.received), 0u) << work.what;
      }
    }
  }
}

TEST(Stop, WhatAKernelGivesStopsTheWorld) {
  const struct {
    Stop stop;
    RunError::Reason reason;
    const char* says;
  } cases[] = {
      {Stop::timed_out, RunError::Reason::timed_out,
       "timed out: block 1 of a kernel at rank 1 has returned Stop::timed_out while the world ran: a wait "
       "reached a deadline that the kernel set; call World::reset() and Transport::reset() on all ranks to "
       "clear the links"},
      {Stop::aborted, RunError::Reason::aborted,
       "aborted by rank 1: block 1 of a kernel at rank 1 has returned Stop::aborted while the world ran; "
       "call World::reset() and Transport::reset() on all ranks to clear the links"},
  };
  for (const auto& one : cases) {
    for (const uint32_t threads : {1u, 4u}) {
      run_local(2, [&](World& world) {
        const auto transport = direct_rendezvous(world, rings(2, 2, 64));
        std::string said;
        try {
          launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
            if (world.rank() == 1 && group.id == 1) return one.stop;
            char byte;  // it does not come
            Leg leg;
            leg.out = &byte;
            leg.bytes = 1;
            return recv_tiles<char>(group, transport->table().at(1 - world.rank(), group.id), leg,
                                    CopyConsume{}, deadline);
          }},
                 {2, threads});
        } catch (const RunError& error) {
          EXPECT_EQ(error.reason, one.reason);
          said = error.what();
        }
        EXPECT_EQ(said, one.says);
        world.reset();
        char byte = 1, got = 0;
        EXPECT_THROW(sendrecv(*transport, &byte, &got, 1, 1 - world.rank(), -1, {}, {}, {1}), UsageError);
        transport->reset();
        sendrecv(*transport, &byte, &got, 1, 1 - world.rank(), -1, {}, {}, {1});
        EXPECT_EQ(got, 1);
      });
    }
  }
}

TEST(Stop, AMessageOfAnotherLengthStopsTheWorld) {
  run_local(2, [](World& world) {
    const auto transport = direct_rendezvous(world, rings(1, 2, 64));
    char data[64] = {};
    const std::string said = message_of_error<RunError>([&] {
      launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
        const Endpoint& e = transport->table().at(1 - world.rank(), group.id);
        if (world.rank() == 0) return send_message(group, e, data, sizeof data, deadline);
        uint64_t sent = 0;
        return recv_message(group, e, data, 48, deadline, sent);
      }},
             {1});
      if (world.rank() == 0) world.barrier();
    });
    EXPECT_EQ(said.find("aborted by rank 1: block 0 of a kernel at rank 1 has returned Stop::aborted"), 0u)
        << said;
  });
}

TEST(Stop, AHangSaysWhoWaitsForWhom) {
  std::string said;
  try {
    run_local(2, [](World& world) {
      const auto transport = direct_rendezvous(world, rings(1, 2, 256));
      std::vector<char> data(1000);
      // Both ranks receive.
      recv(*transport, data.data(), data.size(), 1 - world.rank(), {}, {1});
    });
  } catch (const RunError& error) {
    EXPECT_EQ(error.reason, RunError::Reason::deadlock);
    said = error.what();
  }
  EXPECT_NE(
      said.find("rank 0 block 0 of recv from rank 1, channel 0: the peer's data has arrived up to byte 0"),
      std::string::npos)
      << said;
}

}  // namespace
}  // namespace chorale
