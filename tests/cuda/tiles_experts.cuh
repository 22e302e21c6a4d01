/// \file
/// Tests dispatch() and combine() of chorale/fused/experts.hpp in one graph, whose routes change from replay
/// to replay.
#pragma once

#include <chorale/fused/experts.hpp>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "tests/cuda/tiles_rank.cuh"
#include "tests/fused/expert_oracle.hpp"

namespace tiles_test {

namespace oracle = chorale::fused::test;

/// Computes the result of each expert for its rows.
static __global__ void run_experts(const bf16* rows, bf16* results, const int32_t* begins,
                                   const int32_t* counts, uint32_t experts, uint32_t first_expert,
                                   uint64_t hidden) {
  for (uint32_t expert = 0; expert < experts; ++expert) {
    const uint64_t begin = uint64_t(begins[expert]) * hidden, n = uint64_t(counts[expert]) * hidden;
    for (uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; at < n;
         at += uint64_t(gridDim.x) * blockDim.x) {
      results[begin + at] = narrow<bf16>(widen(rows[begin + at]) * 0.25f + float(first_expert + expert));
    }
  }
}

/// Returns a rank's batch with a fixed number of tokens. Those that the oracle did not make have no experts.
inline oracle::Batch full_batch(const oracle::Case& with, uint64_t call, uint64_t rank) {
  oracle::Batch batch = oracle::batch_of(with, call, rank);
  batch.n = with.max_tokens;
  batch.tokens.resize(batch.n * with.hidden, narrow<bf16>(3.0f));
  batch.experts.resize(uint64_t(batch.n) * with.top_k, -1);
  batch.weights.resize(uint64_t(batch.n) * with.top_k, 1.0f);
  return batch;
}

template <class T>
void set(const OnDevice<T>& to, const std::vector<T>& values, cudaStream_t stream) {
  if (values.empty()) return;
  check(cudaMemcpyAsync(to.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice, stream));
}

inline void report(const char* what, int replay, uint64_t at, double got, double wanted) {
  std::printf("experts: replay %d: %s %llu is %f, expected %f\n", replay, what, (unsigned long long)at, got,
              wanted);
  ++failures;
}

inline void test_routes(const Rank& rank, oracle::Case with, uint32_t threads, int replays) {
  with.ranks = rank.ranks;
  chorale::fused::ExpertOptions options = oracle::options_of(with, DType::bf16);
  options.space = Space::device;
  chorale::fused::ExpertExchange exchange(rank.world, options);
  const uint64_t room = oracle::room_of(with), n = with.max_tokens, routes = n * with.top_k;
  const OnDevice<bf16> tokens(std::vector<bf16>(n * with.hidden)),
      rows(std::vector<bf16>(room * with.hidden)), results(std::vector<bf16>(room * with.hidden)),
      back(std::vector<bf16>(n * with.hidden));
  const OnDevice<int64_t> experts{std::vector<int64_t>(routes)};
  const OnDevice<float> weights{std::vector<float>(routes)};
  const OnDevice<int32_t> counts{std::vector<int32_t>(with.experts_per_rank)},
      begins{std::vector<int32_t>(with.experts_per_rank + 1)};
  chorale::fused::Dispatch<int64_t> out;
  out.tokens = tokens.data();
  out.experts = experts.data();
  out.weights = weights.data();
  out.n = with.max_tokens;
  out.rows = rows.data();
  out.counts = counts.data();
  out.begins = begins.data();
  out.room = room;
  out.alignment = with.alignment;
  chorale::fused::Combine in;
  in.rows = results.data();
  in.out = back.data();
  in.n = with.max_tokens;

  cudaGraph_t graph;
  cudaGraphExec_t replayed;
  check(cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal));
  chorale::fused::dispatch<int64_t>(exchange, out, {rank.stream}, threads);
  run_experts<<<32, 256, 0, rank.stream>>>(rows.data(), results.data(), begins.data(), counts.data(),
                                           with.experts_per_rank, uint32_t(rank.self) * with.experts_per_rank,
                                           with.hidden);
  chorale::fused::combine<bf16>(exchange, in, {rank.stream}, threads);
  check(cudaStreamEndCapture(rank.stream, &graph));
  check(cudaGraphInstantiate(&replayed, graph, 0));
  rank.ready();
  const auto self = uint64_t(rank.self);
  for (int replay = 0; replay < replays && failures == 0; ++replay) {
    std::vector<oracle::Batch> batches;
    std::vector<oracle::Expected> expected;
    for (int from = 0; from < rank.ranks; ++from)
      batches.push_back(full_batch(with, uint64_t(replay), uint64_t(from)));
    for (int at = 0; at < rank.ranks; ++at)
      expected.push_back(oracle::expected_at(with, batches, uint64_t(at)));
    set(tokens, batches[self].tokens, rank.stream);
    set(experts, batches[self].experts, rank.stream);
    set(weights, batches[self].weights, rank.stream);
    check(cudaMemsetAsync(rows.data(), 0xee, room * with.hidden * sizeof(bf16), rank.stream));
    check(cudaGraphLaunch(replayed, rank.stream));
    rank.ended();
    const auto counted = to_host(counts.data(), with.experts_per_rank);
    for (uint64_t at = 0; at < counted.size() && failures == 0; ++at) {
      if (counted[at] != expected[self].counts[at])
        report("the count of expert", replay, at, counted[at], expected[self].counts[at]);
    }
    const auto got = to_host(rows.data(), room * with.hidden);
    for (const auto& [row, from] : expected[self].rows) {
      for (uint64_t at = 0; at < with.hidden && failures == 0; ++at) {
        const float wanted = widen(batches[from.first].tokens[from.second * with.hidden + at]);
        const float seen = widen(got[uint64_t(row) * with.hidden + at]);
        if (seen != wanted) report("an element of row", replay, uint64_t(row), seen, wanted);
      }
    }
    const auto sums = to_host(back.data(), n * with.hidden);
    for (uint64_t at = 0; at < sums.size() && failures == 0; ++at) {
      const float wanted = widen(
          oracle::combined<bf16>(with, batches, expected, {}, self, at / with.hidden, at % with.hidden));
      if (widen(sums[at]) != wanted) report("the result", replay, at, widen(sums[at]), wanted);
    }
    rank.world.barrier();  // the next replay writes to peers
  }
  check(cudaGraphExecDestroy(replayed));
  check(cudaGraphDestroy(graph));
  rank.ready();
}

inline void test_expert_exchange(const Rank& rank, bool quick) {
  oracle::Case with;
  with.experts_per_rank = 4;
  with.top_k = 3;
  with.max_tokens = 50;
  with.hidden = 136;
  for (const uint32_t blocks : {1u, 8u}) {
    with.blocks = blocks;
    for (const PacketForm form : {PacketForm::ll16, PacketForm::ll128}) {
      with.packet = form;
      for (const uint32_t packet_tokens : {0u, 50u}) {
        if (packet_tokens == 0 && form == PacketForm::ll128) continue;
        with.packet_tokens = packet_tokens;
        test_routes(rank, with, blocks == 1 ? 32 : 256, quick ? 3 : 30);
      }
    }
  }
  if (quick) return;
  with.max_tokens = 2000;
  with.packet_tokens = 0;
  with.alignment = 16;
  test_routes(rank, with, 512, 6);
}

}  // namespace tiles_test
