// These tests run collectives in place, as kernels without checks do. If messages are checked, ranks first
// receive each other's messages, and blocks synchronise after that.

#include <algorithm>

#include "tests/unit/tiles/transports.hpp"

namespace chorale {
namespace {

using namespace test;
using T = uint32_t;

constexpr int ranks = 4;

/// Calls f(world, transport, config, of) in many orders: over the ring and as packets, with blocks of one
/// thread and of many. of(rank) returns the data of that rank.
template <class F>
void in_place(uint64_t n, const F& f) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    for (const uint64_t packet_bytes : {0, 1 << 12}) {
      run_local(ranks,
                [&](World& world) {
                  const auto transport =
                      direct_rendezvous(world, with_packets(rings(2, 2, 64), packet_bytes));
                  const auto of = [&](int rank) { return message_of<T>(seed * 10 + uint64_t(rank), n); };
                  f(world, *transport, LaunchConfig{2, seed % 2 ? 8u : 1u}, of);
                },
                {.seed = seed});
      if (testing::Test::HasFailure()) FAIL() << "seed " << seed << ", packets of " << packet_bytes;
    }
  }
}

constexpr uint64_t n = 40;  // elements of a shard
constexpr Shards everywhere{n * sizeof(T), n * sizeof(T)};

TEST(InPlace, AllToAll) {
  in_place(ranks * n, [](World& world, Transport& transport, const LaunchConfig& config, const auto& of) {
    std::vector<T> data = of(world.rank()), expected;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto theirs = of(rank);
      const auto part = theirs.begin() + int64_t(n) * world.rank();
      expected.insert(expected.end(), part, part + int64_t(n));
    }
    const auto kernel = [&](const Group& group, const Deadline& deadline) {
      return all_to_all<T>(group, transport.table(), leg_of<T>(data.data(), data.data(), n), everywhere,
                           CopyProduce{}, CopyConsume{}, deadline);
    };
    launch(transport, Call{kernel}, config);
    EXPECT_MESSAGE(data, expected);
  });
}

TEST(InPlace, AllGather) {
  in_place(n, [](World& world, Transport& transport, const LaunchConfig& config, const auto& of) {
    std::vector<T> data(ranks * n), expected;
    T* const own = &data[n * uint64_t(world.rank())];
    for (int rank = 0; rank < ranks; ++rank) {
      for (const T value : of(rank)) expected.push_back(value + 1);
    }
    const auto mine = of(world.rank());
    std::copy(mine.begin(), mine.end(), own);
    const auto kernel = [&](const Group& group, const Deadline& deadline) {
      return all_gather<T>(group, transport.table(), leg_of<T>(own, data.data(), n), everywhere,
                           CopyProduce{}, AddConsume<T>{1}, deadline);
    };
    launch(transport, Call{kernel}, config);
    EXPECT_MESSAGE(data, expected);
  });
}

TEST(InPlace, ReduceScatter) {
  in_place(ranks * n, [](World& world, Transport& transport, const LaunchConfig& config, const auto& of) {
    std::vector<T> data = of(world.rank()), expected(n, 1);
    T* const own = &data[n * uint64_t(world.rank())];
    for (int rank = 0; rank < ranks; ++rank) {
      const auto theirs = of(rank);
      for (uint64_t at = 0; at < n; ++at) expected[at] += theirs[n * uint64_t(world.rank()) + at];
    }
    const auto kernel = [&](const Group& group, const Deadline& deadline) {
      return reduce_scatter<ReduceOp::sum, T>(group, transport.table(), leg_of<T>(data.data(), own, n),
                                              everywhere, CopyProduce{}, AddConsume<T>{1}, deadline);
    };
    launch(transport, Call{kernel}, config);
    EXPECT_EQ(first_difference(own, expected.data(), n), n);
  });
}

/// The sums are short, so that they go to all ranks at once, or longer.
TEST(InPlace, AllReduce) {
  for (const uint64_t elements : {n, 8 * n}) {
    in_place(elements, [](World& world, Transport& transport, const LaunchConfig& config, const auto& of) {
      std::vector<T> data = of(world.rank()), expected(data.size(), 1);
      for (int rank = 0; rank < ranks; ++rank) {
        const auto theirs = of(rank);
        for (uint64_t at = 0; at < data.size(); ++at) expected[at] += theirs[at];
      }
      const auto kernel = [&](const Group& group, const Deadline& deadline) {
        return all_reduce<ReduceOp::sum, T>(group, transport.table(),
                                            leg_of<T>(data.data(), data.data(), data.size()), CopyProduce{},
                                            AddConsume<T>{1}, deadline);
      };
      launch(transport, Call{kernel}, config);
      EXPECT_MESSAGE(data, expected);
    });
  }
}

}  // namespace
}  // namespace chorale
