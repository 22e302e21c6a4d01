// These tests run groups, signals, semaphores, deadlines and packets with real threads. Values check the
// order, and so does the thread sanitizer if the build has it.

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "chorale/device.hpp"

namespace chorale {
namespace {

/// Implements a block whose threads are OS threads.
class ThreadBlock : public HostBlock {
 public:
  explicit ThreadBlock(uint32_t threads) : threads_(threads) {}

  void park(bool (*)(const void*), const void*) override { std::this_thread::yield(); }
  void step() override {}
  Stop stopped() override { return Stop(load_acquire(&stop)); }

  void sync() override {
    std::unique_lock lock(mutex_);
    const uint64_t round = round_;
    if (++waiting_ == threads_) {
      waiting_ = 0;
      ++round_;
      turn_.notify_all();
    } else {
      turn_.wait(lock, [&] { return round_ != round; });
    }
  }

  uint32_t stop = 0;

 private:
  const uint32_t threads_;
  std::mutex mutex_;
  std::condition_variable turn_;
  uint32_t waiting_ = 0;
  uint64_t round_ = 0;
};

/// Runs f(group) in each thread of a block.
template <class F>
void run_block(uint32_t threads, F f, HostBlock* host = nullptr) {
  ThreadBlock own(threads);
  std::vector<std::thread> running;
  for (uint32_t rank = 0; rank < threads; ++rank) {
    running.emplace_back([&, rank] {
      Group group = block_group(0, 1, host ? host : &own);
      group.rank = rank;
      group.size = threads;
      f(group);
    });
  }
  for (std::thread& thread : running) thread.join();
}

TEST(Group, AgreesAndBroadcasts) {
  run_block(4, [](const Group& group) {
    for (uint32_t round = 0; round < 100; ++round) {
      EXPECT_EQ(group.broadcast(group.leader() ? round : 0u), round);
      EXPECT_EQ(group.all(group.rank != round % 5), round % 5 == 4);
      EXPECT_EQ(group.agree(group.rank == round % 4 ? Stop::aborted : Stop::timed_out), Stop::aborted);
      EXPECT_EQ(group.agree(group.rank == 3 && round % 2 ? Stop::peer_lost : Stop::none),
                round % 2 ? Stop::peer_lost : Stop::none);
    }
  });
}

TEST(Group, SplitsCoverAllGroupsOnce) {
  const uint32_t weights[] = {3, 0, 1, 2};
  for (uint32_t count = 1; count < 20; ++count) {
    for (uint32_t kind = 0; kind < 3; ++kind) {
      std::vector<uint32_t> members(4), sizes(4);
      for (uint32_t id = 0; id < count; ++id) {
        Group group;
        group.id = id;
        group.count = count;
        const Split split = kind == 0   ? group.split(4)
                            : kind == 1 ? group.split_interleaved(4)
                                        : group.split_weighted(weights, 4);
        ASSERT_LT(split.part, 4u);
        ASSERT_LT(split.group.id, split.group.count);
        sizes[split.part] = split.group.count;
        ++members[split.part];
      }
      EXPECT_EQ(members, sizes) << "count " << count << ", kind " << kind;
    }
  }
}

TEST(Group, ItemsAreSharedOnce) {
  for (uint64_t items = 0; items < 30; ++items) {
    std::vector<int> contiguous(items), strided(items);
    for (uint32_t id = 0; id < 7; ++id) {
      Group group;
      group.id = id;
      group.count = 7;
      group.each_contiguous(items, [&](uint64_t item) { ++contiguous[item]; });
      group.each_strided(items, [&](uint64_t item) { ++strided[item]; });
    }
    EXPECT_EQ(contiguous, std::vector<int>(items, 1));
    EXPECT_EQ(strided, std::vector<int>(items, 1));
  }
}

TEST(Signal, PublishesWhatWasWrittenBefore) {
  constexpr uint64_t rounds = 2000;
  Signal ping, pong;
  uint64_t data = 0;
  std::thread peer([&] {
    const Group group = block_group();
    for (uint64_t round = 1; round <= rounds; ++round) {
      ASSERT_EQ(wait_until(group, &ping, Cmp::ge, round), Stop::none);
      ASSERT_EQ(data, round);
      data = round + 1000000;
      signal_set(group, &pong, round);
    }
  });
  const Group group = block_group();
  for (uint64_t round = 1; round <= rounds; ++round) {
    data = round;
    signal_add(group, &ping);
    ASSERT_EQ(wait_until(group, &pong, Cmp::eq, round), Stop::none);
    ASSERT_EQ(data, round + 1000000);
  }
  peer.join();
}

TEST(Signal, EveryThreadOfAGroupSeesWhatIsBehindIt) {
  constexpr uint64_t rounds = 100;
  Barrier here, there;
  std::vector<uint64_t> data(4);
  std::thread peer([&] {
    run_block(4, [&](const Group& group) {
      for (uint64_t round = 1; round <= rounds; ++round) {
        data[group.rank] = round;
        arrive(group, &here);
        ASSERT_EQ(wait(group, &there), Stop::none);
      }
    });
  });
  run_block(3, [&](const Group& group) {
    for (uint64_t round = 1; round <= rounds; ++round) {
      ASSERT_EQ(wait(group, &here), Stop::none);
      for (const uint64_t value : data) ASSERT_EQ(value, round);
      arrive(group, &there);
    }
  });
  peer.join();
}

TEST(Signal, Comparisons) {
  const bool wanted[][3] = {{false, true, false}, {true, false, true},  {true, false, false},
                            {true, true, false},  {false, false, true}, {false, true, true}};
  for (int cmp = 0; cmp < 6; ++cmp) {
    for (uint64_t seen = 1; seen <= 3; ++seen)
      EXPECT_EQ(compare(seen, Cmp(cmp), 2), wanted[cmp][seen - 1]) << cmp;
  }
}

TEST(Signal, ReplaysOfABarrierNeedNoReset) {
  Barrier barrier;
  const Group group = block_group();
  for (uint64_t round = 0; round < 3; ++round) {
    for (int peer = 0; peer < 2; ++peer) arrive(group, &barrier);
    EXPECT_EQ(wait(group, &barrier, {}, 2), Stop::none);
    EXPECT_EQ(wait(group, &barrier, Deadline{nullptr, 1000000}), Stop::timed_out);
  }
}

TEST(Deadline, EndsAWaitInEveryThread) {
  Signal never;
  run_block(3, [&](const Group& group) {
    EXPECT_EQ(wait_until(group, &never, Cmp::ne, 0, Deadline{nullptr, 1000000}), Stop::timed_out);
  });
}

TEST(Deadline, TheLongestIsNotOverAtOnce) {
  for (const uint64_t ticks : {~uint64_t{0}, ~uint64_t{0} - 1, ~uint64_t{0} / 2}) {
    Deadline deadline{nullptr, ticks, 0};
    EXPECT_GE(deadline.started(), ~uint64_t{0} / 2);
    deadline.start();
    EXPECT_FALSE(deadline.expired());
  }
}

TEST(Deadline, AbortEndsAWaitAndTheFirstReasonCounts) {
  Signal never;
  AbortWord word;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_TRUE(raise_stop(&word, Stop::peer_lost, 5));
    EXPECT_FALSE(raise_stop(&word, Stop::aborted, 6));
  });
  const Group group = block_group();
  Deadline deadline;
  deadline.shared = &word;
  EXPECT_EQ(wait_until(group, &never, Cmp::ne, 0, deadline), Stop::peer_lost);
  EXPECT_EQ(word.rank, 5u);
  EXPECT_EQ(stop_for(group, deadline), Stop::peer_lost);
  other.join();
}

TEST(Deadline, TheSchedulerMayEndAWait) {
  Signal never;
  ThreadBlock block(2);
  store_release(&block.stop, uint32_t(Stop::deadlock));
  run_block(
      2, [&](const Group& group) { EXPECT_EQ(wait_until(group, &never, Cmp::ne, 0), Stop::deadlock); },
      &block);
}

TEST(Semaphore, NoPermitIsLostOrTakenTwice) {
  constexpr int rounds = 3000;
  Semaphore work, room;
  uint64_t slot[2] = {}, total = 0;
  semaphore_release(block_group(), &room, 2);
  std::thread consumer([&] {
    const Group group = block_group();
    for (int round = 0; round < rounds; ++round) {
      ASSERT_EQ(semaphore_acquire(group, &work), Stop::none);
      total += slot[round % 2];
      semaphore_release(group, &room);
    }
  });
  const Group group = block_group();
  for (int round = 0; round < rounds; ++round) {
    ASSERT_EQ(semaphore_acquire(group, &room), Stop::none);
    slot[round % 2] = uint64_t(round);
    semaphore_release(group, &work);
  }
  consumer.join();
  EXPECT_EQ(total, uint64_t(rounds) * (rounds - 1) / 2);
  EXPECT_EQ(work.permits, 0u);
  EXPECT_EQ(semaphore_acquire(group, &work, Deadline{nullptr, 1000000}), Stop::timed_out);
}

TEST(Semaphore, ProtectsASectionAmongSeveral) {
  Semaphore lock;
  uint64_t count = 0;
  std::vector<std::thread> running;
  for (int thread = 0; thread < 4; ++thread) {
    running.emplace_back([&] {
      const Group group = block_group();
      for (int round = 0; round < 20000; ++round) {
        ASSERT_EQ(semaphore_acquire(group, &lock), Stop::none);
        ++count;
        semaphore_release(group, &lock);
      }
    });
  }
  semaphore_release(block_group(), &lock);
  for (std::thread& thread : running) thread.join();
  EXPECT_EQ(count, 80000u);
}

template <class P>
struct Packet : testing::Test {};
using PacketTypes = testing::Types<LL16, LL8>;
TYPED_TEST_SUITE(Packet, PacketTypes);

TYPED_TEST(Packet, IsThereOnlyWithItsOwnFlag) {
  alignas(16) TypeParam slots[packets_per_unit<TypeParam>] = {};
  const Unit sent{{1, 2, 3, 4}};
  Unit seen{};
  EXPECT_FALSE(try_read_unit(slots, 7, seen));
  write_unit(slots, sent, 7);
  EXPECT_FALSE(try_read_unit(slots, 6, seen));
  EXPECT_FALSE(try_read_unit(slots, 8, seen));
  EXPECT_TRUE(try_read_unit(slots, 7, seen));
  EXPECT_EQ(std::memcmp(&seen, &sent, sizeof sent), 0);
}

TYPED_TEST(Packet, EveryWordOfAPacketMustHaveArrived) {
  const uint32_t words = sizeof(TypeParam) * packets_per_unit<TypeParam> / 8;
  for (uint32_t missing = 0; missing < words; ++missing) {
    alignas(16) TypeParam slots[packets_per_unit<TypeParam>] = {};
    write_unit(slots, Unit{{1, 2, 3, 4}}, 7);
    std::memset(reinterpret_cast<char*>(slots) + missing * 8, 0, 8);
    Unit seen;
    EXPECT_FALSE(try_read_unit(slots, 7, seen)) << missing;
  }
}

template <class P>
struct AnyPacket : testing::Test {};
using AllPacketTypes = testing::Types<LL16, LL8, LL128>;
TYPED_TEST_SUITE(AnyPacket, AllPacketTypes);

TYPED_TEST(AnyPacket, CarriesDataBetweenThreads) {
  constexpr uint32_t rounds = 300, bytes = 1000;
  alignas(128) static char slots[2][2048];  // by parity of the round
  std::memset(slots, 0, sizeof slots);
  Signal done;
  std::thread peer([&] {
    const Group group = block_group();
    std::vector<uint32_t> got(bytes / 4);
    for (uint32_t round = 1; round <= rounds; ++round) {
      const void* from = slots[round % 2];
      ASSERT_EQ(transfer(group, bytes, Packets<TypeParam>(from, round), Mem(got.data())), Stop::none);
      for (uint32_t word = 0; word < bytes / 4; ++word) ASSERT_EQ(got[word], round * 1000 + word);
      signal_set(group, &done, round);
    }
  });
  const Group group = block_group();
  std::vector<uint32_t> data(bytes / 4);
  for (uint32_t round = 1; round <= rounds; ++round) {
    if (round > 2) {
      ASSERT_EQ(wait_until(group, &done, Cmp::ge, round - 2), Stop::none);
    }
    for (uint32_t word = 0; word < bytes / 4; ++word) data[word] = round * 1000 + word;
    transfer(group, bytes, Mem(data.data()), Packets<TypeParam>(static_cast<void*>(slots[round % 2]), round));
  }
  peer.join();
}

TYPED_TEST(AnyPacket, AMissingOneStopsTheTransferInEveryThread) {
  alignas(128) static char slots[256];
  std::memset(slots, 0, sizeof slots);
  char data[128] = {1}, got[128] = {};
  transfer(block_group(), 64, Mem(data), Packets<TypeParam>(static_cast<void*>(slots), 1));
  Deadline deadline;
  deadline.ticks = 1000000;
  run_block(3, [&](const Group& group) {
    EXPECT_EQ(
        transfer(group, 128, Packets<TypeParam>(static_cast<const void*>(slots), 1, &deadline), Mem(got)),
        Stop::timed_out);
  });
  EXPECT_EQ(got[0], 1);
}

}  // namespace
}  // namespace chorale
