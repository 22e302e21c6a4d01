/// \file
/// Tests all-to-alls whose counts are in the GPU's memory, and change from replay to replay of one graph.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/cuda/tiles_rank.cuh"
#include "tests/fused/expert_exchange.hpp"

namespace tiles_test {

struct CountedAllToAll {
  EndpointTable table;
  Leg message;
  Counts<int32_t> counts;
  uint32_t parts;  ///< the number of groups into which a block is cut
  __device__ Stop operator()(const Group& block, const Deadline& deadline) const {
    const Group group = parts == 1 ? block : multiwarp_group(block, block.size / parts);
    return all_to_all_v<uint32_t>(group, table, message, counts, CopyProduce{}, CopyConsume{}, deadline);
  }
};

struct Untouched {
  __device__ uint32_t operator()(uint64_t) const { return 0xeeeeeeee; }
};

/// Returns how many runs rank `from` sends to rank `to`: none in one of four cases.
inline int32_t count_at(uint64_t call, int from, int to, uint64_t largest) {
  const uint32_t drawn = value_at(call * 71 + uint64_t(from), uint64_t(to));
  return drawn % 4 == 0 ? 0 : int32_t(drawn * largest / 1000);
}

inline std::vector<int32_t> begins(const std::vector<int32_t>& counts) {
  std::vector<int32_t> at(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), at.begin(), 0);
  return at;
}

inline uint64_t shard_message(uint64_t call, int from, int to) {
  return call * 4099 + uint64_t(from) * 64 + uint64_t(to);
}

/// \param largest  the largest number of runs of `each` elements that a rank sends to another
inline void test_counts(const Rank& rank, Transport& transport, uint64_t largest, uint32_t each,
                        const LaunchConfig& config, int replays, uint32_t parts = 1) {
  const uint64_t room = largest * uint64_t(rank.ranks);
  Buffer in(room * each), out(room * each);
  const OnDevice<int32_t> numbers(std::vector<int32_t>(2 * rank.ranks));
  Counts<int32_t> counts;
  counts.send = numbers.data();
  counts.received = numbers.data() + rank.ranks;
  counts.each = each;
  counts.room = room;
  cudaGraph_t graph;
  cudaGraphExec_t replayed;
  check(cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal));
  launch(transport, CountedAllToAll{transport.table(), leg_of(in, out, 0), counts, parts}, config,
         {rank.stream});
  check(cudaStreamEndCapture(rank.stream, &graph));
  check(cudaGraphInstantiate(&replayed, graph, 0));
  rank.ready();
  for (int call = 0; call < replays && failures == 0; ++call) {
    std::vector<int32_t> to(rank.ranks), from(rank.ranks);
    for (int peer = 0; peer < rank.ranks; ++peer) {
      to[peer] = count_at(call, rank.self, peer, largest);
      from[peer] = count_at(call, peer, rank.self, largest);
    }
    const std::vector<int32_t> send_at = begins(to), receive_at = begins(from);
    check(cudaMemcpyAsync(numbers.data(), to.data(), to.size() * 4, cudaMemcpyHostToDevice, rank.stream));
    for (int peer = 0; peer < rank.ranks; ++peer) {
      fill_values<<<64, 256, 0, rank.stream>>>(in.data() + uint64_t(send_at[peer]) * each,
                                               uint64_t(to[peer]) * each,
                                               shard_message(call, rank.self, peer));
    }
    check(cudaGetLastError());
    out.clear(rank.stream);
    check(cudaGraphLaunch(replayed, rank.stream));
    rank.ended();
    if (to_host(counts.received, uint64_t(rank.ranks)) != from) {
      std::printf("all_to_all_v: replay %d gives other counts than were sent\n", call);
      ++failures;
    }
    for (int peer = 0; peer < rank.ranks; ++peer) {
      expect_values("all_to_all_v", rank.stream, out.data() + uint64_t(receive_at[peer]) * each,
                    uint64_t(from[peer]) * each, Sent{shard_message(call, peer, rank.self)});
    }
    const uint64_t end = uint64_t(receive_at.back() + from.back());
    expect_values("all_to_all_v, behind what came", rank.stream, out.data() + end * each, (room - end) * each,
                  Untouched{});
    rank.world.barrier();  // the next replay writes to peers
  }
  check(cudaGraphExecDestroy(replayed));
  check(cudaGraphDestroy(graph));
  rank.ready();
}

/// Sends tokens to the ranks of their experts and back, and multiplies them by their weights.
inline void test_experts(const Rank& rank, uint32_t tokens, uint32_t cols) {
  const auto transport = direct_rendezvous(rank.world, Rank::rings(4, 2, 4 << 10));
  const auto value = [](int owner, uint64_t at) { return float((at * 31 + uint64_t(owner) * 17) % 53); };
  std::vector<int32_t> order, numbers(2 * rank.ranks);
  for (int to = 0; to < rank.ranks; ++to) {
    for (uint32_t token = 0; token < tokens; ++token) {
      if (value_at(uint64_t(rank.self), token) % uint32_t(rank.ranks) != uint32_t(to)) continue;
      order.push_back(int32_t(token));
      ++numbers[to];
    }
  }
  std::vector<float> mine(uint64_t(tokens) * cols), weights(tokens);
  for (uint64_t at = 0; at < mine.size(); ++at) mine[at] = value(rank.self, at);
  for (uint32_t token = 0; token < tokens; ++token) weights[token] = float(1 + token % 4);
  const uint64_t room = uint64_t(tokens) * uint64_t(rank.ranks);
  const OnDevice<float> in(mine), there(std::vector<float>(room * cols)), weighs(weights),
      back(std::vector<float>(mine.size()));
  const OnDevice<int32_t> sorted(order), counts(numbers);
  const int32_t *const to = counts.data(), *const came = to + rank.ranks;
  rank.ready();
  launch(*transport,
         DispatchTokens<float>{transport->table(), in.data(), there.data(), cols, sorted.data(), to,
                               counts.data() + rank.ranks, room},
         {4, 128}, {rank.stream});
  launch(*transport,
         CombineTokens<float>{transport->table(), there.data(), back.data(), cols, sorted.data(), came,
                              weighs.data()},
         {4, 128}, {rank.stream});
  rank.ended();
  const std::vector<float> got = to_host(back.data(), mine.size());
  for (uint64_t at = 0; at < got.size(); ++at) {
    if (got[at] == mine[at] * weights[at / cols]) continue;
    std::printf("tokens to experts and back: element %llu is %f, not %f\n", (unsigned long long)at, got[at],
                mine[at] * weights[at / cols]);
    ++failures;
    return;
  }
}

/// Tests links of both kinds, with no more slots than needed, with runs of whole units and others.
inline void test_all_to_all_v(const Rank& rank, bool quick) {
  for (const uint32_t blocks : {1u, 4u}) {
    RendezvousOptions options = Rank::rings(blocks, 2, 4 << 10);
    options.packet_bytes = 0;
    const std::shared_ptr<Transport> direct = direct_rendezvous(rank.world, options);
    test_counts(rank, *direct, 40, 3, {blocks, 64}, quick ? 5 : 40);
    if (!quick) test_counts(rank, *direct, 900, 256, {blocks, 256}, 20);
    const std::shared_ptr<Transport> port = port_rendezvous(rank.world, options, ProxyKind::copy_engine);
    test_counts(rank, *port, 300, 20, {blocks, 256}, quick ? 3 : 10);
    port->hand_over();
    const auto both = mesh(direct, port, rank.ranks / 2);
    test_counts(rank, *both, 300, 20, {blocks, 256}, quick ? 3 : 10);
    port->hand_over();
    // Shares now fit in packets, mostly or sometimes. One thread per rank sends them, or all threads do.
    for (const uint64_t bytes : {400, 4096}) {
      options.packet_bytes = bytes;
      const std::shared_ptr<Transport> packets = direct_rendezvous(rank.world, options);
      for (const uint32_t parts : {1u, blocks}) {
        const LaunchConfig config{blocks / parts, 64 * parts};
        test_counts(rank, *packets, 40, 3, config, quick ? 5 : 40, parts);
        test_counts(rank, *packets, 300, 20, config, quick ? 3 : 20, parts);
      }
      if (!quick) test_counts(rank, *packets, 900, 256, {blocks, 256}, 20);
      test_counts(rank, *mesh(packets, port, rank.ranks / 2), 300, 20, {blocks, 256}, quick ? 3 : 10);
      port->hand_over();
    }
  }
  test_experts(rank, 100, 64);
  test_experts(rank, 77, 21);
}

}  // namespace tiles_test
