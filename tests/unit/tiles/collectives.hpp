/// \file
/// Compares the device library's collectives with the expected results, bit for bit.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "support.hpp"
#include "transports.hpp"

namespace chorale::test {

/// Runs all four collectives, twice, with other data each time.
template <class T>
void all_four(World& world, Transport& transport, uint64_t n, const LaunchConfig& config) {
  const uint64_t ranks = uint64_t(world.ranks()), self = uint64_t(world.rank());
  const EndpointTable table = transport.table();
  const Shards shards{n * sizeof(T), n * sizeof(T)};
  for (uint64_t call = 0; call < 2; ++call) {
    const auto of = [&](uint64_t rank) { return message_of<T>(call * 100 + rank, n * ranks); };
    const std::vector<T> in = of(self);
    std::vector<T> out(n * ranks), expected(n * ranks);

    launch(transport, Call{[&](const Group& group, const Deadline& deadline) {
             return all_to_all<T>(group, table, leg_of<T>(in.data(), out.data(), n), shards, CopyProduce{},
                                  CopyConsume{}, deadline);
           }},
           config);
    for (uint64_t rank = 0; rank < ranks; ++rank) {
      const auto theirs = of(rank);
      std::copy_n(theirs.begin() + int64_t(self * n), n, expected.begin() + int64_t(rank * n));
    }
    EXPECT_MESSAGE(out, expected) << "all_to_all";

    launch(transport, Call{[&](const Group& group, const Deadline& deadline) {
             return all_gather<T>(group, table, leg_of<T>(in.data(), out.data(), n), shards, CopyProduce{},
                                  CopyConsume{}, deadline);
           }},
           config);
    for (uint64_t rank = 0; rank < ranks; ++rank) {
      const auto theirs = of(rank);
      std::copy_n(theirs.begin(), n, expected.begin() + int64_t(rank * n));
    }
    EXPECT_MESSAGE(out, expected) << "all_gather";

    // The sum is in rank order and rounded once.
    std::vector<T> sum(n * ranks);
    for (uint64_t at = 0; at < n * ranks; ++at) {
      Accumulator<T> value = widen(value_at<T>(call * 100, at));
      for (uint64_t rank = 1; rank < ranks; ++rank) {
        value = combine<ReduceOp::sum>(value, widen(value_at<T>(call * 100 + rank, at)));
      }
      sum[at] = narrow<T>(value);
    }
    std::vector<T> shard(n);
    launch(transport, Call{[&](const Group& group, const Deadline& deadline) {
             return reduce_scatter<ReduceOp::sum, T>(group, table, leg_of<T>(in.data(), shard.data(), n),
                                                     shards, CopyProduce{}, CopyConsume{}, deadline);
           }},
           config);
    EXPECT_EQ(first_difference(shard.data(), sum.data() + self * n, n), n) << "reduce_scatter";

    // One element less than can be divided evenly, and in place.
    const uint64_t all = n * ranks == 0 ? 0 : n * ranks - 1;
    out = in;
    launch(transport, Call{[&](const Group& group, const Deadline& deadline) {
             return all_reduce<ReduceOp::sum, T>(group, table, leg_of<T>(out.data(), out.data(), all),
                                                 CopyProduce{}, CopyConsume{}, deadline);
           }},
           config);
    EXPECT_EQ(first_difference(out.data(), sum.data(), all), all) << "all_reduce";
  }
}

/// Returns how many messages of packets have gone over a link, and whether the ring was used.
inline std::pair<uint64_t, bool> sent_over(const Transport& transport, int peer, uint32_t channel = 0) {
  const LinkState::Cursor& cursor = transport.endpoint(peer, channel).local->cursor;
  return {load_relaxed(&cursor.packets_sent), load_relaxed(&cursor.sent) != 0};
}

}  // namespace chorale::test
