/// \file
/// Tests messages of every form: alignments, tiles and signals of any size, chains, hooks, parts of blocks.
/// They are small, and are compared on the host.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/cuda/tiles_rank.cuh"

namespace tiles_test {

/// Returns the words that `Buffer::fill` writes for a message.
inline std::vector<uint32_t> words_of(uint64_t message, uint64_t n) {
  std::vector<uint32_t> words(n);
  for (uint64_t at = 0; at < n; ++at) words[at] = value_at(message, at);
  return words;
}

template <class T>
void expect_same(const std::string& what, const std::vector<T>& got, const std::vector<T>& expected) {
  for (uint64_t at = 0; at < expected.size(); ++at) {
    if (got[at] == expected[at]) continue;
    std::printf("%s: element %llu is %llu, not %llu\n", what.c_str(), (unsigned long long)at,
                (unsigned long long)got[at], (unsigned long long)expected[at]);
    ++failures;
    return;
  }
}

/// Sends from every rank to the next, in turns. Its blocks are cut into `parts` groups with one channel each.
template <class T, class Produce = CopyProduce>
struct Around : ToTheRight {
  Produce produce;
  uint32_t parts = 1;

  __device__ Stop operator()(const Group& block, const Deadline& deadline) const {
    if (parts == 1) return exchange(block, deadline);
    return block.agree(exchange(multiwarp_group(block, block.size / parts), deadline));
  }
  __device__ Stop exchange(const Group& group, const Deadline& deadline) const {
    const Leg share = share_of(message, group.id, group.count);
    return sendrecv_tiles<T>(group, table.at(right(), group.id), table.at(left(), group.id), share, share,
                             produce, CopyConsume{}, deadline);
  }
};

inline void test_alignments(const Rank& rank) {
  const auto transport = direct_rendezvous(rank.world, Rank::rings(2, 3, 1024));
  const uint64_t n = 10007, words = n / 4 + 8;
  const Buffer in(words), out(words);
  rank.ready();
  in.fill(rank.stream, rank.self);
  const std::vector<uint32_t> theirs = words_of(rank.left, words);
  for (const uint64_t from : {0, 1, 4, 7, 8}) {
    for (const uint64_t to : {0, 3, 4, 8, 13}) {
      Leg leg;
      leg.in = reinterpret_cast<const char*>(in.data()) + from;
      leg.out = reinterpret_cast<char*>(out.data()) + to;
      leg.bytes = n;
      out.clear(rank.stream);
      launch(*transport, Around<uint8_t>{{transport->table(), leg}, {}}, {2, 128}, {rank.stream});
      rank.ended();
      std::vector<uint8_t> expected(words * 4, 0xee);
      std::memcpy(expected.data() + to, reinterpret_cast<const char*>(theirs.data()) + from, n);
      expect_same("from " + std::to_string(from) + " to " + std::to_string(to),
                  to_host(reinterpret_cast<const uint8_t*>(out.data()), expected.size()), expected);
    }
  }
}

inline void test_granularities(const Rank& rank) {
  const auto transport = direct_rendezvous(rank.world, Rank::rings(2, 2, 1024));
  const uint64_t n = 1250;
  const Buffer in(n), out(n);
  rank.ready();
  in.fill(rank.stream, rank.self);
  for (const uint64_t signal_bytes : {1, 16, 100, 256, 5000}) {
    for (const uint64_t tile_bytes : {0, 16, 48, 100, 1000, 1024}) {
      Leg leg = leg_of(in, out, n);
      leg.elem = 1;
      leg.signal_bytes = signal_bytes;
      leg.tile_bytes = tile_bytes;
      out.clear(rank.stream);
      launch(*transport, Around<uint8_t>{{transport->table(), leg}, {}}, {2, 128}, {rank.stream});
      rank.ended();
      expect_same("signals " + std::to_string(signal_bytes) + ", tiles " + std::to_string(tile_bytes),
                  to_host(out.data(), n), words_of(rank.left, n));
    }
  }
}

/// Makes many calls of different sizes without waiting in between.
inline void test_back_to_back(const Rank& rank) {
  const auto transport = direct_rendezvous(rank.world, Rank::rings(3, 2, 512));
  const std::vector<uint64_t> sizes = {7000, 0, 1, 300, 12001, 4, 0, 128, 5000, 3};
  std::vector<std::unique_ptr<Buffer>> in, out;
  for (uint64_t call = 0; call < sizes.size(); ++call) {
    in.push_back(std::make_unique<Buffer>(sizes[call]));
    out.push_back(std::make_unique<Buffer>(sizes[call]));
    in[call]->fill(rank.stream, call * 100 + rank.self);
  }
  rank.ready();
  for (uint64_t call = 0; call < sizes.size(); ++call) {
    launch(*transport, Around<uint32_t>{{transport->table(), leg_of(*in[call], *out[call], sizes[call])}, {}},
           {3, 96}, {rank.stream});
  }
  rank.ended();
  for (uint64_t call = 0; call < sizes.size(); ++call) {
    expect_same("call " + std::to_string(call), to_host(out[call]->data(), sizes[call]),
                words_of(call * 100 + rank.left, sizes[call]));
  }
}

inline void test_parts_of_blocks(const Rank& rank) {
  const uint64_t n = 30001;
  const Buffer in(n), out(n);
  in.fill(rank.stream, rank.self);
  for (const uint32_t parts : {2u, 4u, 8u}) {
    const auto transport = direct_rendezvous(rank.world, Rank::rings(3 * parts, 2, 1024));
    rank.ready();
    for (int call = 0; call < 3; ++call) {
      out.clear(rank.stream);
      launch(*transport, Around<uint32_t>{{transport->table(), leg_of(in, out, n)}, {}, parts}, {3, 256},
             {rank.stream});
      rank.ended();
      expect_same("parts of blocks", to_host(out.data(), n), words_of(rank.left, n));
    }
  }
}

/// Sends rows of a table, selected by their numbers.
inline void test_gather(const Rank& rank) {
  const uint32_t rows = 50, cols = 21, stride = 25, there = 60;
  const auto transport = direct_rendezvous(rank.world, Rank::rings(2, 2, 512));
  const Buffer in(there * stride), out(rows * cols);
  in.fill(rank.stream, rank.self);
  std::vector<int32_t> numbers(rows);
  for (uint32_t row = 0; row < rows; ++row) numbers[row] = int32_t((row * 7 + 3) % there);
  const OnDevice<int32_t> index(numbers);
  rank.ready();
  Leg leg = leg_of(in, out, rows * cols);
  leg.rows = rows;
  leg.cols = cols;
  leg.in_strides = {stride, 1};
  using Rows = GatherProduce<uint32_t, int32_t>;
  launch(*transport, Around<uint32_t, Rows>{{transport->table(), leg}, Rows{index.data()}}, {2, 64},
         {rank.stream});
  rank.ended();
  std::vector<uint32_t> expected;
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t col = 0; col < cols; ++col) {
      expected.push_back(value_at(rank.left, uint64_t(numbers[row]) * stride + col));
    }
  }
  expect_same("gathered rows", to_host(out.data(), expected.size()), expected);
}

/// Rank 0 sends, the others forward, the last one keeps. If Sums, each adds its own data.
template <bool Sums>
struct Chain {
  EndpointTable table;
  Leg message;
  __device__ Stop operator()(const Group& group, const Deadline& deadline) const {
    using Add = AccumulateConsume<ReduceOp::sum, uint32_t>;
    using AddAndPass = AccumulateForward<ReduceOp::sum, uint32_t>;
    using Keep = std::conditional_t<Sums, Add, CopyConsume>;
    using Pass = std::conditional_t<Sums, AddAndPass, CopyConsume>;
    const Leg share = share_of(message, group.id, group.count);
    const int self = table.self;
    if (self == 0) return send_tiles<uint32_t>(group, table.at(1, group.id), share, CopyProduce{}, deadline);
    const Endpoint& from = table.at(self - 1, group.id);
    if (self + 1 == table.ranks) return recv_tiles<uint32_t>(group, from, share, Keep{}, deadline);
    return forward_tiles<uint32_t>(group, from, table.at(self + 1, group.id), share, Pass{}, deadline);
  }
};

inline void test_chains(const Rank& rank) {
  const auto transport = direct_rendezvous(rank.world, Rank::rings(2, 2, 512));
  for (const uint64_t n : {1, 128, 1251, 30001}) {
    const Buffer in(n), out(n);
    rank.ready();
    in.fill(rank.stream, n + rank.self);
    Leg leg = leg_of(in, out, n);
    leg.signal_bytes = n % 2 ? 128 : 0;
    const bool last = rank.self + 1 == rank.ranks;
    // Rank 1 only forwards, unless it is the last.
    if (rank.self == 1 && !last) leg.out = nullptr;
    launch(*transport, Chain<false>{transport->table(), leg}, {2, 128}, {rank.stream});
    rank.ended();
    if (rank.self > 0 && leg.out) expect_same("a chain", to_host(out.data(), n), words_of(n, n));

    leg.in = leg.out = in.data();
    if (!last) leg.out = nullptr;
    launch(*transport, Chain<true>{transport->table(), leg}, {2, 128}, {rank.stream});
    rank.ended();
    if (!last) continue;
    std::vector<uint32_t> sums(n);
    for (int from = 0; from < rank.ranks; ++from) {
      for (uint64_t at = 0; at < n; ++at) sums[at] += value_at(n + from, at);
    }
    expect_same("a chain that adds", to_host(in.data(), n), sums);
  }
}

struct AddUp {
  EndpointTable table;
  Leg message;
  __device__ Stop operator()(const Group& group, const Deadline& deadline) const {
    return all_gather<uint32_t>(group, table, message, {}, CopyProduce{},
                                AccumulateConsume<ReduceOp::sum, uint32_t>{}, deadline);
  }
};

/// Adds up all ranks' messages in one place, as packets and through rings.
inline void test_one_place(const Rank& rank) {
  RendezvousOptions options = Rank::rings(2, 2, 1024);
  options.packet_bytes = 4096;
  const auto transport = direct_rendezvous(rank.world, options);
  for (const uint64_t n : {1, 700, 30001}) {
    const Buffer in(n), out(n);
    in.fill(rank.stream, n + rank.self);
    check(cudaMemsetAsync(out.data(), 0, n * sizeof(uint32_t), rank.stream));
    rank.ready();
    launch(*transport, AddUp{transport->table(), leg_of(in, out, n)}, {2, 256}, {rank.stream});
    rank.ended();
    std::vector<uint32_t> sums(n);
    for (int from = 0; from < rank.ranks; ++from) {
      for (uint64_t at = 0; at < n; ++at) sums[at] += value_at(n + from, at);
    }
    expect_same("added up in one place", to_host(out.data(), n), sums);
  }
}

inline void test_forms(const Rank& rank) {
  test_alignments(rank);
  test_granularities(rank);
  test_back_to_back(rank);
  test_parts_of_blocks(rank);
  test_gather(rank);
  test_chains(rank);
  test_one_place(rank);
}

}  // namespace tiles_test
