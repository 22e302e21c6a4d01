/// \file
/// Tests the programs of docs/fused-kernels.md. Results are small, and are compared on the host.
#pragma once

#include <chorale/one_sided_window.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "tests/cuda/tiles_rank.cuh"
#include "tests/fused/quantised_all_gather.hpp"
#include "tests/fused/rms_norm_packets.hpp"
#include "tests/fused/rms_norm_window.hpp"
#include "tests/fused/transpose_by_peer.hpp"
#include "tests/fused/transpose_window.hpp"

namespace tiles_test {

template <class Kernel>
void test_transpose(const Rank& rank, const char* what, uint32_t rows, uint32_t cols, uint32_t each,
                    const Kernel& make) {
  const uint64_t n = uint64_t(rows) * cols * rank.ranks;
  const auto transport = direct_rendezvous(rank.world, Rank::rings(4, 3, 16 << 10));
  Buffer in(n), out(n);
  rank.ready();
  for (int call = 0; call < 3; ++call) {
    in.fill(rank.stream, call * 100 + rank.self);
    out.clear(rank.stream);
    launch(*transport, make(TransposeByPeer<uint32_t>{transport->table(), in.data(), out.data(), rows, cols}),
           {each * uint32_t(rank.ranks), 256}, {rank.stream});
    rank.ended();
    out.expect(what, rank.stream, n,
               Transposed{uint64_t(call) * 100, uint32_t(rank.self), uint32_t(rank.ranks), rows, cols});
  }
}

/// Makes calls in a row. Between them the host only checks the result.
inline void test_transpose_window(const Rank& rank, uint32_t rows, uint32_t cols, uint32_t blocks) {
  const uint64_t n = uint64_t(rows) * cols * rank.ranks;
  const auto transport = direct_rendezvous(rank.world, Rank::rings(1, 1, 16));
  const OneSidedWindow window = OneSidedWindow::create(rank.world, n * 4, 0, 2 * blocks, Space::device);
  Buffer in(n);
  rank.ready();
  for (int call = 0; call < 5; ++call) {
    in.fill(rank.stream, call * 100 + rank.self);
    launch(*transport, TransposeIntoWindow<uint32_t>{window.view(), in.data(), rows, cols, 64, 16},
           {blocks, 256}, {rank.stream});
    expect_values("transposed into windows", rank.stream, reinterpret_cast<const uint32_t*>(window.local()),
                  n, Transposed{uint64_t(call) * 100, uint32_t(rank.self), uint32_t(rank.ranks), rows, cols});
  }
  rank.ended();
}

/// Calls launch(in, norm, result) several times.
template <class Launch>
void check_rms_norm(const Rank& rank, const char* what, uint32_t rows, uint32_t cols, const Launch& launch) {
  const auto value = [](int rank, uint64_t at) { return float((at * 31 + rank * 17) % 53); };
  const uint64_t n = uint64_t(rows) * cols;
  std::vector<float> input(n), kept(n), ones(cols, 0.5f);
  for (uint64_t at = 0; at < n; ++at) {
    input[at] = value(rank.self, at);
    kept[at] = float(at % 41);
  }
  const OnDevice<float> in(input), residual(kept), weight(ones);
  rank.ready();
  for (int call = 0; call < 3; ++call) {
    const float* const out = launch(in.data(), RmsNormConsume<float>{residual.data(), weight.data(), 1e-5f});
    rank.ended();
    const std::vector<float> got = to_host(out, n), left = to_host(residual.data(), n);
    for (uint64_t row = 0; row < rows && failures == 0; ++row) {
      double squares = 0;
      for (uint64_t at = row * cols; at < (row + 1) * cols; ++at) {
        for (int from = 0; from < rank.ranks; ++from) kept[at] += value(from, at);
        squares += double(kept[at]) * kept[at];
      }
      const double scale = 0.5 / std::sqrt(squares / cols + 1e-5);
      for (uint64_t at = row * cols; at < (row + 1) * cols; ++at) {
        if (left[at] == kept[at] && std::fabs(got[at] - kept[at] * scale) <= 1e-5 * std::fabs(got[at]))
          continue;
        std::printf("%s: call %d, element %llu is %f, not %f\n", what, call, (unsigned long long)at, got[at],
                    kept[at] * scale);
        ++failures;
        break;
      }
    }
  }
}

template <class Kernel>
void test_rms_norm(const Rank& rank, const char* what, uint32_t rows, uint32_t cols, uint32_t blocks) {
  const auto transport = direct_rendezvous(rank.world, Rank::rings(blocks, 2, 16));
  const OnDevice<float> out(std::vector<float>(uint64_t(rows) * cols));
  check_rms_norm(rank, what, rows, cols, [&](float* in, const RmsNormConsume<float>& norm) {
    launch(*transport, Kernel{{transport->table(), in, out.data(), rows, cols, norm}}, {blocks, 32},
           {rank.stream});
    return out.data();
  });
}

inline void test_rms_norm_window(const Rank& rank, uint32_t rows, uint32_t cols, uint32_t blocks) {
  const uint64_t n = uint64_t(rows) * cols;
  const auto transport = direct_rendezvous(rank.world, Rank::rings(1, 1, 16));
  const OneSidedWindow window = OneSidedWindow::create(rank.world, 2 * n * 4, 0, 2 * blocks, Space::device);
  float* const input = reinterpret_cast<float*>(window.local());
  check_rms_norm(rank, "RMSNorm in windows", rows, cols, [&](float* in, const RmsNormConsume<float>& norm) {
    check(cudaMemcpyAsync(input, in, n * 4, cudaMemcpyDeviceToDevice, rank.stream));
    launch(*transport, RmsNormWindow<float>{window.view(), rows, cols, norm}, {blocks, 64}, {rank.stream});
    return input + n;
  });
}

inline void test_quantised_all_gather(const Rank& rank) {
  const uint64_t n = 128 * 37 + 40;
  const auto of = [n](int rank) {
    std::vector<float> values(n);
    for (uint64_t at = 0; at < n; ++at) values[at] = float((at * 131 + rank * 71) % 1009) * 0.37f - 100;
    return values;
  };
  const auto transport = direct_rendezvous(rank.world, Rank::rings(2, 2, 288 * 4));
  const OnDevice<float> in(of(rank.self)), out(std::vector<float>(n * rank.ranks, -1.0f));
  rank.ready();
  launch(*transport, QuantisedAllGather<float>{transport->table(), in.data(), out.data(), n}, {2, 128},
         {rank.stream});
  rank.ended();
  const std::vector<float> got = to_host(out.data(), n * rank.ranks);
  for (int from = 0; from < rank.ranks; ++from) {
    const std::vector<float> theirs = of(from);
    for (uint64_t at = 0; at < n; ++at) {
      // The format has three bits of mantissa, and no element is beyond the scale.
      if (std::fabs(got[from * n + at] - theirs[at]) <= std::fabs(theirs[at]) / 15 + 1.5f) continue;
      std::printf("quantised all-gather: element %llu of rank %d is %f, not %f\n", (unsigned long long)at,
                  from, got[from * n + at], theirs[at]);
      ++failures;
      return;
    }
  }
}

inline void test_fused(const Rank& rank) {
  for (const uint32_t rows : {300u, 64u}) {
    test_transpose(rank, "transposed tiles", rows, 37, 4, [](const TransposeByPeer<uint32_t>& work) {
      return TransposeTilesByPeer<uint32_t>{work, 5};
    });
  }
  test_transpose(rank, "transposed packets", 30, 21, 2,
                 [](const TransposeByPeer<uint32_t>& work) { return TransposePackets<uint32_t>{work}; });
  // Rows have fewer units than threads, or more; there are more rows than blocks.
  test_rms_norm<RmsNormOneShot<float>>(rank, "one-shot RMSNorm", 1, 32, 1);
  test_rms_norm<RmsNormOneShot<float>>(rank, "one-shot RMSNorm", 5, 200, 3);
  test_rms_norm<RmsNormTwoShot<float>>(rank, "two-shot RMSNorm", 5, 200, 2);
  test_rms_norm<RmsNormTwoShot<float>>(rank, "two-shot RMSNorm", 1, 32, 1);
  test_transpose_window(rank, 300, 37, 7);
  test_transpose_window(rank, 64, 64, 1);
  test_rms_norm_window(rank, 1, 32, 1);
  test_rms_norm_window(rank, 23, 200, 3);
  test_rms_norm_window(rank, 7, 200, 8);
  test_quantised_all_gather(rank);
}

}  // namespace tiles_test
