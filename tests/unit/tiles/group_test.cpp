// These tests check groups of every scope on fibers, and the signals between them.

#include "support.hpp"
#include "tests/group_scopes.hpp"

namespace chorale {
namespace {

using namespace test;

/// Runs f(group) as a kernel.
template <class F>
struct Each {
  F f;
  Stop operator()(const Group& group, const Deadline&) const {
    f(group);
    return Stop::none;
  }
};
template <class F>
Each(F) -> Each<F>;

void with_groups(const LaunchConfig& config, const std::function<void(const Group&)>& f,
                 std::optional<uint64_t> seed = {}) {
  run_local(1,
            [&](World& world) {
              const auto transport = direct_rendezvous(world, rings(64, 1, 16));
              launch(*transport, Each{std::cref(f)}, config);
            },
            {.seed = seed});
}

TEST(Groups, OfBlocksHaveEveryThreadOnce) {
  for (const uint32_t threads : {1u, 2u, 8u}) {
    std::vector<int> seen(5 * threads);
    with_groups({5, threads}, [&](const Group& group) {
      EXPECT_EQ(group.size, threads);
      EXPECT_EQ(group.count, 5u);
      EXPECT_EQ(group.id, group.block);
      ++seen[group.id * threads + group.rank];
    });
    EXPECT_EQ(seen, std::vector<int>(5 * threads, 1));
  }
}

struct Expect {
  void operator()(bool holds, int line) const { EXPECT_TRUE(holds) << "tests/group_scopes.hpp:" << line; }
};

TEST(Groups, OfEveryScopeMeetAndAgree) {
  for (const std::optional<uint64_t> seed : {std::optional<uint64_t>(), std::optional<uint64_t>(3)}) {
    for (const uint32_t threads : {1u, 6u, 8u}) {
      std::vector<uint64_t> room(3 * threads);
      with_groups({3, threads}, EveryScope<Expect>{room.data(), {}}, seed);
    }
  }
}

/// Parts of one size leave nothing behind that disturbs parts of another size.
TEST(Groups, PartsOfABlockMayBeOfOneSizeAfterAnother) {
  std::vector<uint64_t> room(8);
  with_groups({1, 8}, [&](const Group& block) {
    for (const uint32_t threads : {2u, 4u, 2u, 8u, 1u, 4u}) {
      const Group part = multiwarp_group(block, threads);
      part.sync();
      check_group(part, &room[part.id * threads], Expect{});
      block.sync();
    }
  });
}

/// A collective splits a block into parts, too, while a kernel keeps its own parts.
TEST(Groups, PartsOfABlockMayBeKept) {
  std::vector<uint64_t> room(8);
  with_groups({1, 8}, [&](const Group& block) {
    const Group kept = multiwarp_group(block, 4);
    for (const uint32_t threads : {4u, 2u, 8u}) {
      multiwarp_group(block, threads).sync();
      block.sync();
      kept.sync();
      check_group(kept, &room[kept.id * 4], Expect{});
      block.sync();
    }
  });
}

TEST(Groups, CoverItemsOnce) {
  for (uint64_t items : {0, 1, 7, 100}) {
    std::vector<std::atomic<int>> contiguous(items), strided(items);
    with_groups({3, 4}, [&](const Group& block) {
      const Group part = multiwarp_group(block, 2);
      part.each_contiguous(items, [&](uint64_t item) {
        if (part.leader()) ++contiguous[item];
      });
      part.each_strided(items, [&](uint64_t item) {
        if (part.leader()) ++strided[item];
      });
    });
    for (uint64_t item = 0; item < items; ++item) {
      EXPECT_EQ(contiguous[item], 1);
      EXPECT_EQ(strided[item], 1);
    }
  }
}

TEST(Groups, ImpossibleSplitsAreRefused) {
  const uint32_t zeros[] = {0, 0};
  Group one;
  one.scope = Scope::block;
  EXPECT_THROW(one.split(0), std::logic_error);
  EXPECT_THROW(one.split_interleaved(0), std::logic_error);
  EXPECT_THROW(one.split_weighted(zeros, 2), std::logic_error);
  EXPECT_THROW(multiwarp_group(one, 0), std::logic_error);
  EXPECT_THROW(multiwarp_group(one, 2), std::logic_error);
  std::string said;
  try {
    with_groups({1, 4}, [](const Group& block) { multiwarp_group(block, 3); });
  } catch (const std::logic_error& error) {
    said = error.what();
  }
  EXPECT_NE(said.find("does not divide"), std::string::npos);
  Group block;
  block.scope = Scope::block;
  block.size = 4;
  EXPECT_THROW(multiwarp_group(warp_group(block), 1), std::logic_error);
  EXPECT_THROW(cluster_group(thread_group(block)), std::logic_error);
  block.count = 2;
  block.id = block.block = 1;
  EXPECT_EQ(cluster_group(block).size, 4u);
  EXPECT_THROW(cluster_group(block.split(2).group), std::logic_error);
}

TEST(Groups, AThreadThatThrowsLeavesNobodyBehind) {
  EXPECT_THROW(with_groups({2, 8},
                           [](const Group& block) {
                             if (block.rank == 3) throw std::runtime_error("on purpose");
                             block.sync();
                           }),
               std::runtime_error);
}

/// Makes ranks wait on each other's signals, which are in the first link.
struct PingPong {
  EndpointTable table;
  uint64_t rounds;
  std::vector<uint64_t>* data;  // of both ranks

  Stop operator()(const Group& group, const Deadline& deadline) const {
    const Endpoint& e = table.at(1 - table.self, 0);
    for (uint64_t round = 1; round <= rounds; ++round) {
      if (table.self == 0) {
        (*data)[group.rank] = round * 10 + group.rank;
        signal_set(group, &e.remote->data_ready, round);
      }
      const Stop stop = wait_until(group, &e.local->data_ready, Cmp::ge, round, deadline);
      if (stop != Stop::none) return stop;
      if (table.self == 0) continue;
      for (uint32_t rank = 0; rank < group.size; ++rank) EXPECT_EQ((*data)[rank], round * 10 + rank);
      signal_add(group, &e.remote->data_ready);
    }
    return Stop::none;
  }
};

TEST(Signals, PingPong) {
  for (const uint32_t threads : {1u, 8u}) {
    std::vector<uint64_t> data(8);
    run_local(2, [&](World& world) {
      const auto transport = direct_rendezvous(world, rings(1, 1, 16));
      launch(*transport, PingPong{transport->table(), 200, &data}, {1, threads});
    });
  }
}

TEST(Signals, SixComparisons) {
  for (uint64_t seen = 0; seen < 5; ++seen) {
    EXPECT_EQ(compare(seen, Cmp::eq, 2), seen == 2);
    EXPECT_EQ(compare(seen, Cmp::ne, 2), seen != 2);
    EXPECT_EQ(compare(seen, Cmp::lt, 2), seen < 2);
    EXPECT_EQ(compare(seen, Cmp::le, 2), seen <= 2);
    EXPECT_EQ(compare(seen, Cmp::gt, 2), seen > 2);
    EXPECT_EQ(compare(seen, Cmp::ge, 2), seen >= 2);
  }
}

struct Meet {
  Barrier* const* barriers;       // by rank
  std::atomic<uint64_t>* rounds;  // by rank
  int self, ranks;

  Stop operator()(const Group& group, const Deadline& deadline) const {
    for (uint64_t round = 1; round <= 1000; ++round) {
      if (group.leader()) rounds[self] = round;
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank != self) arrive(group, barriers[rank]);
      }
      const Stop stop = wait(group, barriers[self], deadline, uint64_t(ranks - 1));
      if (stop != Stop::none) return stop;
      for (int rank = 0; rank < ranks; ++rank) EXPECT_GE(rounds[rank], round);
    }
    return Stop::none;
  }
};

TEST(Signals, AThousandBarriers) {
  for (const uint32_t threads : {1u, 8u}) {
    Barrier barriers[3];
    Barrier* const places[] = {&barriers[0], &barriers[1], &barriers[2]};
    std::atomic<uint64_t> rounds[3] = {};
    run_local(3, [&](World& world) {
      const auto transport = direct_rendezvous(world, rings(1, 1, 16));
      launch(*transport, Meet{places, rounds, world.rank(), 3}, {1, threads});
    });
  }
}

}  // namespace
}  // namespace chorale
