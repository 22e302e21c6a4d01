/// \file
/// Tests packets of every form over separate links, because one form's data may look like another's
/// flags.
#pragma once

#include <cstdint>

#include "tests/cuda/tiles_rank.cuh"

namespace tiles_test {

template <class P>
struct PacketsToTheRight : ToTheRight {
  __device__ Stop operator()(const Group& group, const Deadline& deadline) const {
    const Leg share = share_of(message, group.id, group.count);
    const Stop stop =
        send_packets<P, uint32_t>(group, table.at(right(), group.id), share, CopyProduce{}, deadline);
    if (stop != Stop::none) return stop;
    return recv_packets<P, uint32_t>(group, table.at(left(), group.id), share, CopyConsume{}, deadline);
  }
};

/// Replays a graph of packets. Flags come from counts on the GPU, so the graph needs no new ones.
template <class P>
void test_packets_of(const Rank& rank, const char* what, bool quick) {
  for (const uint64_t n : {1, 5, 28, 1000}) {  // 28 fill a line of LL128
    for (const uint32_t blocks : {1u, 4u}) {
      const auto transport = direct_rendezvous(rank.world, Rank::rings(blocks, 2, 16));
      const Buffer in(n), out(n);
      const uint64_t replays = n == 1000 && !quick ? 100 : 5;
      replay(
          rank, replays,
          [&] {
            launch(*transport, PacketsToTheRight<P>{{transport->table(), leg_of(in, out, n)}}, {blocks, 64},
                   {rank.stream});
          },
          [&](uint64_t number) {
            in.fill(rank.stream, number * 100 + uint64_t(rank.self));
            out.clear(rank.stream);
          },
          [&](uint64_t number) {
            out.expect(what, rank.stream, n, Sent{number * 100 + uint64_t(rank.left)});
          });
    }
  }
}

inline void test_packets(const Rank& rank, bool quick) {
  test_packets_of<LL8>(rank, "packets of 8 bytes", quick);
  test_packets_of<LL16>(rank, "packets of 16 bytes", quick);
  test_packets_of<LL128>(rank, "packets of 128 bytes", quick);
}

}  // namespace tiles_test
