/// \file
/// Tests sends, receives and collectives of one length, number of blocks and kind of link.
#pragma once

#include <cstdint>

#include "tests/cuda/tiles_packets.cuh"
#include "tests/cuda/tiles_rank.cuh"

namespace tiles_test {

struct AllReduce {
  EndpointTable table;
  Leg message;
  __device__ Stop operator()(const Group& group, const Deadline& deadline) const {
    return all_reduce<ReduceOp::sum, uint32_t>(group, table, message, CopyProduce{}, CopyConsume{}, deadline);
  }
};
struct AllToAll {
  EndpointTable table;
  Leg message;
  Shards shards;
  __device__ Stop operator()(const Group& group, const Deadline& deadline) const {
    return all_to_all<uint32_t>(group, table, message, shards, CopyProduce{}, AddConsume<uint32_t>{1},
                                deadline);
  }
};

/// The other collectives have hooks at both ends.
struct AllGather {
  EndpointTable table;
  Leg message;
  Shards shards;
  __device__ Stop operator()(const Group& group, const Deadline& deadline) const {
    return all_gather<uint32_t>(group, table, message, shards, ScaleProduce<uint32_t>{3},
                                AddConsume<uint32_t>{5}, deadline);
  }
};
struct ReduceScatter {
  EndpointTable table;
  Leg message;
  Shards shards;
  __device__ Stop operator()(const Group& group, const Deadline& deadline) const {
    return reduce_scatter<ReduceOp::sum, uint32_t>(group, table, message, shards, ScaleProduce<uint32_t>{2},
                                                   AddConsume<uint32_t>{9}, deadline);
  }
};

struct Gathered {
  uint64_t n;
  __device__ uint32_t operator()(uint64_t at) const { return value_at(at / n, at % n) * 3 + 5; }
};
struct Scattered {
  uint64_t n, self;
  int ranks;
  __device__ uint32_t operator()(uint64_t at) const {
    uint32_t sum = 9;
    for (int rank = 0; rank < ranks; ++rank) sum += 2 * value_at(uint64_t(rank), self * n + at);
    return sum;
  }
};

/// Gives group g g + 1 parts of the message, and the first groups perhaps nothing.
struct UnevenToTheRight : ToTheRight {
  __device__ Stop operator()(const Group& group, const Deadline& deadline) const {
    const uint64_t units = units_of(message.bytes), parts = uint64_t(group.count) * (group.count + 1) / 2;
    const auto bound = [&](uint64_t id) {
      const uint64_t bytes = units * (id * (id + 1) / 2) / parts * unit_bytes;
      return id == group.count || bytes > message.bytes ? message.bytes : bytes;
    };
    Leg share = message;
    share.begin = bound(group.id);
    share.bytes = bound(group.id + 1) - share.begin;
    const Endpoint &to = table.at(right(), group.id), &from = table.at(left(), group.id);
    return with_link(to, [&](auto out) {
      return with_link(from, [&](auto in) {
        return sendrecv_tiles<uint32_t, decltype(out), CopyProduce, CopyConsume, None, decltype(in)>(
            group, to, from, share, share, CopyProduce{}, CopyConsume{}, deadline);
      });
    });
  }
};

inline void test_replays(const Rank& rank, Transport& transport, const Buffer& in, const Buffer& out,
                         uint64_t n, const LaunchConfig& config, uint64_t replays) {
  replay(
      rank, replays,
      [&] {
        launch(transport, AllReduce{transport.table(), leg_of(in, out, n)}, config, {rank.stream});
      },
      [&](uint64_t number) { in.fill(rank.stream, number * 100 + rank.self); },
      [&](uint64_t number) {
        out.expect("all_reduce, replayed", rank.stream, n, SumOf{number * 100, rank.ranks});
      });
}

/// \param packet_bytes  the transport's packet_bytes
inline void test_shape(const Rank& rank, Transport& links, uint64_t n, const LaunchConfig& config,
                       uint64_t packet_bytes, bool quick) {
  const LaunchStream on{rank.stream};
  Transport* const transport = &links;
  Buffer in(n * rank.ranks), out(n * rank.ranks);
  rank.ready();

  in.fill(rank.stream, rank.self);
  out.clear(rank.stream);
  sendrecv(*transport, in.data(), out.data(), n, rank.right, rank.left, CopyProduce{},
           AddConsume<uint32_t>{7}, config, on);
  rank.ended();
  out.expect("sendrecv", rank.stream, n, Sent{uint64_t(rank.left), 1, 7});

  out.clear(rank.stream);
  launch(*transport, UnevenToTheRight{{transport->table(), leg_of(in, out, n)}}, config, on);
  rank.ended();
  out.expect("uneven shares", rank.stream, n, Sent{uint64_t(rank.left)});

  // After these calls some links have carried more messages of packets than others.
  if (n * 4 / config.blocks + 16 <= packet_bytes) {
    in.fill(rank.stream, rank.self);
    for (int call = 0; call < 5; ++call) {
      out.clear(rank.stream);
      launch(*transport, PacketsToTheRight<LL16>{{transport->table(), leg_of(in, out, n)}}, config, on);
      rank.ended();
      out.expect("packets", rank.stream, n, Sent{uint64_t(rank.left)});
    }
  }

  launch(*transport, AllToAll{transport->table(), leg_of(in, out, n), {n * 4, n * 4}}, config, on);
  rank.ended();
  out.expect("all_to_all", rank.stream, n * rank.ranks, Exchanged{n, uint64_t(rank.self)});

  out.clear(rank.stream);
  launch(*transport, AllGather{transport->table(), leg_of(in, out, n), {0, n * 4}}, config, on);
  rank.ended();
  out.expect("all_gather", rank.stream, n * rank.ranks, Gathered{n});

  out.clear(rank.stream);
  launch(*transport, ReduceScatter{transport->table(), leg_of(in, out, n), {n * 4, 0}}, config, on);
  rank.ended();
  out.expect("reduce_scatter", rank.stream, n, Scattered{n, uint64_t(rank.self), rank.ranks});

  test_replays(rank, *transport, in, out, n, config, quick || n > 1 << 14 ? 5 : 100);
}

}  // namespace tiles_test
