// These tests check transfers between endpoints of several hosts: their order, their pieces and their end.

#include <algorithm>
#include <deque>
#include <new>

#include "ends.hpp"
#include "slow_copies.hpp"
#include "tests/has.hpp"

namespace chorale::test {
namespace {

constexpr size_t piece = size_t{4} << 20;

/// Each rank sends to all others, from small messages to several pieces, and back.
std::string exchange(World& world, End& end, const std::vector<size_t>& sizes) {
  Bound bound(world, *std::max_element(sizes.begin(), sizes.end()));
  end.bind(bound);
  int turn = 0;
  for (const size_t bytes : sizes) {
    ++turn;
    const std::vector<char> mine = data_of(world.rank(), bytes, turn);
    for (int peer = 0; peer < world.ranks(); ++peer) {
      if (peer != world.rank()) end.send(bound, {peer}, mine.data(), bytes, true);
    }
    for (int peer = 0; peer < world.ranks(); ++peer) {
      if (peer == world.rank()) continue;
      if (!comes(bound.signal_of(peer), uint64_t(turn))) return "no signal";
      if (!bound.has(peer, data_of(peer, bytes, turn))) return "wrong data of " + std::to_string(bytes);
      if (!comes(bound.done_at(peer), uint64_t(turn))) return "it is not told that it is done";
    }
    end.settle();
    if (!end.endpoint.idle()) return "something is on its way";
    world.barrier();
  }
  return "good";
}

TEST(RemoteTransfers, the_signal_comes_after_all_pieces_and_done_after_that) {
  expect_good(3, [](World& world) {
    End end(world);
    return exchange(world, end, {1, 4096, piece - 1, piece, piece + 1, 2 * piece + 17, 3});
  });
}

TEST(RemoteTransfers, copies_may_take_time_and_room_may_be_short) {
  expect_good(3, [](World& world) {
    End end(world, std::make_unique<SlowCopies>(3));
    return exchange(world, end, {1, SlowCopies::piece, 20 * SlowCopies::piece + 5, 2});
  });
}

/// More orders are given than may be in flight, in pieces that are not whole.
TEST(RemoteTransfers, any_number_of_orders_is_taken) {
  expect_good(2, [](World& world) -> std::string {
    constexpr size_t bytes = 3 << 20, orders = 24;
    End end(world);
    Bound bound(world, bytes * orders);
    end.bind(bound);
    const int peer = 1 - world.rank();
    const std::vector<char> mine = data_of(world.rank(), bytes * orders);
    for (size_t at = 0; at < orders; ++at)
      end.send(bound, {.peer = peer, .at = at * bytes}, mine.data() + at * bytes, bytes, at % 3 == 0);
    if (!comes(bound.done_at(peer), orders)) return "not all is done";
    end.settle();
    world.barrier();
    if (load_acquire(bound.signal_of(peer)) != (orders + 2) / 3) return "not all signals";
    return bound.has(peer, data_of(peer, bytes * orders)) ? "good" : "wrong data";
  });
}

/// Nothing is written outside the memory that a binding exposes to peers.
TEST(RemoteTransfers, bytes_outside_a_buffer_are_refused) {
  const std::string text = "rank 0 puts 4096 bytes at byte 4097 of a buffer of rank 1 that has 8192";
  expect_from_hosts({text, text}, [](World& world) {
    End end(world);
    Bound bound(world, 4096);
    end.bind(bound);
    const std::vector<char> mine(4096);
    if (world.rank() == 0) end.send(bound, {.peer = 1, .at = 4097}, mine.data(), 4096, false);
    return stop_of(world);
  });
}

TEST(RemoteTransfers, signals_that_a_rank_lacks_are_refused) {
  const std::string text = "rank 0 sets signal 0 of rank 1, which has 0";
  expect_from_hosts({text, text}, [](World& world) {
    End end(world);
    Bound bound(world, 4096);
    bound.memory.n_signals = 0;
    end.bind(bound);
    if (world.rank() == 0) end.send(bound, {1}, nullptr, 0, true);
    return stop_of(world);
  });
}

TEST(RemoteTransfers, a_lack_of_memory_stops_the_world) {
  struct NoCopies final : remote::Copies {
    size_t piece_bytes() const override { return 1000; }
    ucx::Payload copy_out(const char*, size_t) override { throw std::bad_alloc(); }
    bool copy_in(char*, const ucx::Payload&, bool) override { return false; }
    uint64_t ended_out() override { return 0; }
    uint64_t ended_in() override { return 0; }
    void finish() override {}
  };
  const std::string text = "rank 0 has no memory for a copy of a message of 1000 bytes between hosts";
  expect_from_hosts({text, text}, [](World& world) {
    End end(world, std::make_unique<NoCopies>());
    Bound bound(world, 4096);
    end.bind(bound);
    const std::vector<char> mine(4096);
    if (world.rank() == 0) end.send(bound, {1}, mine.data(), 4096, false);
    return stop_of(world);
  });
}

// -- The end of a launch

/// Gives the timeout of worlds in which it passes, or in which transfers outlive it.
constexpr std::chrono::nanoseconds brief = 5s;

TEST(RemoteTransfers, a_peer_that_takes_nothing_is_named_when_the_time_is_over) {
  expect_good(
      2,
      [](World& world) -> std::string {
        End end(world);
        Bound bound(world, 4096);
        end.bind(bound);
        world.barrier();
        if (world.rank() == 1) end.stop();
        world.barrier();
        if (world.rank() == 0) {
          end.send(bound, {1}, nullptr, 0, true);
          end.settle();
        }
        const std::string text = stop_of(world);
        for (const char* part : {"rank 0 waited 5 s for rank 1, on host 1 (",
                                 "), to take 1 of its messages; ", "make the world with a longer timeout"}) {
          if (!has(text, part)) return text;
        }
        return "good";
      },
      brief);
}

/// The receiver exposes its output for one run after the other. Together that takes longer than the timeout.
TEST(RemoteTransfers, those_that_move_outlive_the_time_out) {
  static constexpr uint64_t runs = 7;
  static constexpr auto pause = 900ms;
  static_assert(runs * pause > brief);
  expect_good(
      2,
      [](World& world) -> std::string {
        End end(world);
        Bound bound(world, 8 * runs, true);
        end.bind(bound);
        const std::vector<char> mine = data_of(0, 8 * runs);
        if (world.rank() == 0) {
          for (uint64_t run = 1; run <= runs; ++run)
            end.send(bound, {.peer = 1, .run = run, .at = 8 * (run - 1)}, mine.data() + 8 * (run - 1), 8,
                     true);
          end.settle();
          world.check();
          if (load_acquire(bound.done_at(1)) != runs) return "not all is done";
          if (end.moved == 0) return "nobody was told that it moves";
        } else {
          for (uint64_t run = 1; run <= runs; ++run) {
            std::this_thread::sleep_for(pause);
            end.endpoint.begin_run(bound.number, run, {}, bound.region());
            if (!comes(bound.signal_of(0), run)) return "no signal in a run";
          }
          if (!bound.has(0, mine)) return "wrong data";
          end.settle();
          if (end.moved < int(runs)) return "nobody was told that it moves";
        }
        world.barrier();
        return "good";
      },
      brief);
}

// -- The life of an endpoint

/// An endpoint that is destroyed still sends its pending work.
TEST(RemoteTransfers, a_last_signal_is_sent_by_an_end_that_goes) {
  expect_good(2, [](World& world) -> std::string {
    for (int round = 0; round < 4; ++round) {
      Bound bound(world, 64);
      {
        End end(world);
        end.bind(bound);
        world.barrier();
        if (world.rank() == 0) {
          end.stop();
          end.send(bound, {1}, nullptr, 0, true);
        } else if (!comes(bound.signal_of(0), 1)) {
          return "no signal in round " + std::to_string(round);
        }
      }
    }
    return "good";
  });
}

/// A sleeping thread handles late messages, and wake() ends its sleep.
TEST(RemoteTransfers, who_rests_hears_of_late_messages) {
  expect_good(2, [](World& world) -> std::string {
    End end(world);
    end.stop();
    Bound bound(world, 64);
    end.bind(bound);
    const std::vector<char> mine = data_of(0, 64);
    if (world.rank() == 0) {
      std::this_thread::sleep_for(300ms);
      end.start();
      end.send(bound, {1}, mine.data(), 64, true);
      if (!comes(bound.done_at(1), 1)) return "it is not done";
    } else {
      std::atomic<bool> quit{false};
      std::thread resting([&] {
        while (!quit) end.endpoint.rest();
      });
      const bool came = comes(bound.signal_of(0), 1);
      end.settle();
      quit = true;
      end.endpoint.wake();
      resting.join();
      if (!came || !bound.has(0, mine)) return "it has not come";
    }
    world.barrier();
    return "good";
  });
}

/// Without a link there is nothing to poll, so only wake() ends the sleep.
TEST(RemoteTransfers, a_rest_before_there_is_a_link_ends_when_it_is_woken) {
  expect_good(2, [](World& world) -> std::string {
    remote::RemoteEndpoint endpoint(world, std::make_unique<remote::HostCopies>(), {});
    std::thread resting([&] { endpoint.rest(); });
    endpoint.wake();
    resting.join();
    return "good";
  });
}

/// A reset drops all that was sent before it, and later transfers arrive.
TEST(RemoteTransfers, a_reset_forgets) {
  expect_good(2, [](World& world) -> std::string {
    constexpr size_t bytes = 8 << 20;
    End end(world);
    const int peer = 1 - world.rank();
    const std::vector<char> old = data_of(world.rank(), bytes, 1), fresh = data_of(world.rank(), bytes, 2);
    std::deque<Bound> bounds;
    uint64_t last_number = 0;
    for (int round = 0; round < 5; ++round) {
      Bound& before = bounds.emplace_back(world, bytes);
      end.bind(before);
      end.send(before, {peer}, old.data(), bytes, true);
      std::this_thread::sleep_for(round * 1ms);
      if (world.rank() == round % 2) world.abort("enough");
      stop_of(world);
      end.endpoint.drop();
      if (!end.endpoint.idle()) return "something is not forgotten";
      end.send(before, {peer}, old.data(), bytes, true);  // nothing is accepted any more
      world.reset();
      end.endpoint.connect();
      Bound& after = bounds.emplace_back(world, bytes);
      end.bind(after);
      if (after.number <= last_number) return "a number is given twice";
      last_number = after.number;
      end.endpoint.unregister_binding(before.number);  // it is gone, and `after` is another
      world.barrier();
      if (load_acquire(after.signal_of(peer)) != 0 || after.of(peer)[1] != 0) return "old data";
      world.barrier();
      end.send(after, {peer}, fresh.data(), bytes, true);
      if (!comes(after.signal_of(peer), 1)) return "no signal behind the reset";
      if (!after.has(peer, data_of(peer, bytes, 2))) return "wrong data";
      if (!comes(after.done_at(peer), 1)) return "it is not done";
      end.settle();
      world.barrier();
    }
    return "good";
  });
}

}  // namespace
}  // namespace chorale::test
