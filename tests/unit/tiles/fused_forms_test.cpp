// These tests run forms of the programs of docs/fused-kernels.md that are faster for messages of certain
// lengths.

#include <algorithm>
#include <cstdlib>

#include "chorale/one_sided_window.hpp"
#include "support.hpp"
#include "tests/fused/rms_norm_packets.hpp"
#include "tests/fused/rms_norm_window.hpp"
#include "tests/fused/transpose_by_peer.hpp"
#include "tests/fused/transpose_window.hpp"

namespace chorale {
namespace {

using namespace test;

/// Returns the expected part of rank `self` of matrices of rows x (ranks * cols).
std::vector<float> transposed(int ranks, int self, uint64_t call, uint32_t rows, uint32_t cols) {
  std::vector<float> expected(uint64_t(rows) * cols * uint32_t(ranks));
  for (uint64_t peer = 0; peer < uint32_t(ranks); ++peer) {
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t col = 0; col < cols; ++col) {
        expected[(peer * cols + col) * rows + row] =
            value_at<float>(call * 100 + peer, row * cols * uint32_t(ranks) + uint32_t(self) * cols + col);
      }
    }
  }
  return expected;
}

TEST(FusedForms, TransposeTilesByPeer) {
  for (const int ranks : {1, 2, 4}) {
    for (const uint32_t threads : {1u, 8u}) {
      run_local(ranks, [&](World& world) {
        const uint32_t rows = 37, cols = 21, blocks = uint32_t(ranks) * 2 * 3;
        const auto transport = direct_rendezvous(world, rings(3, 2, 3 * rows * sizeof(float) + 16));
        for (uint64_t call = 0; call < 3; ++call) {
          const auto in =
              message_of<float>(call * 100 + uint64_t(world.rank()), rows * cols * uint32_t(ranks));
          std::vector<float> out(in.size());
          launch(*transport,
                 TransposeTilesByPeer<float>{{transport->table(), in.data(), out.data(), rows, cols}, 3},
                 {blocks, threads});
          EXPECT_MESSAGE(out, transposed(ranks, world.rank(), call, rows, cols));
        }
      });
    }
  }
}

TEST(FusedForms, TransposePackets) {
  for (const int ranks : {1, 2, 4}) {
    for (const uint32_t threads : {1u, 8u}) {
      run_local(ranks, [&](World& world) {
        const uint32_t rows = 13, cols = 10;
        const auto transport =
            direct_rendezvous(world, with_packets(rings(2, 2, 16), rows * cols * sizeof(float)));
        for (uint64_t call = 0; call < 5; ++call) {
          const auto in =
              message_of<float>(call * 100 + uint64_t(world.rank()), rows * cols * uint32_t(ranks));
          std::vector<float> out(in.size());
          launch(*transport, TransposePackets<float>{{transport->table(), in.data(), out.data(), rows, cols}},
                 {2 * uint32_t(ranks), threads});
          EXPECT_MESSAGE(out, transposed(ranks, world.rank(), call, rows, cols));
        }
      });
    }
  }
}

/// Makes five calls with new data each, as soon as the previous result has been checked.
void test_transpose_window(int ranks, uint32_t threads, LocalOptions options = {}) {
  run_local(
      ranks,
      [&](World& world) {
        const uint32_t rows = 37, cols = 21, blocks = 3;
        const auto transport = direct_rendezvous(world, rings(1, 1, 16));
        const uint64_t n = uint64_t(rows) * cols * uint32_t(ranks);
        const OneSidedWindow window = OneSidedWindow::create(world, n * sizeof(float), 0, 2 * blocks);
        for (uint64_t call = 0; call < 5; ++call) {
          const auto in = message_of<float>(call * 100 + uint64_t(world.rank()), n);
          launch(*transport, TransposeIntoWindow<float>{window.view(), in.data(), rows, cols, 8, 16},
                 {blocks, threads});
          const float* const out = reinterpret_cast<const float*>(window.local());
          const std::vector<float> expected = transposed(ranks, world.rank(), call, rows, cols);
          EXPECT_EQ(first_difference(out, expected.data(), n), n);
        }
      },
      options);
}

TEST(FusedForms, TransposeIntoWindow) {
  for (const int ranks : {1, 2, 4}) {
    for (const uint32_t threads : {1u, 8u}) test_transpose_window(ranks, threads);
  }
}

/// Runs a kernel five times with new data, and compares the result with the same arithmetic done here.
/// run(in, norm) returns the kernel's result.
template <class Run>
void check_rms_norm(World& world, uint32_t rows, uint32_t cols, const Run& run) {
  const uint64_t n = uint64_t(rows) * cols, ranks = uint32_t(world.ranks());
  const auto weight = message_of<float>(77, cols);
  auto residual = message_of<float>(88, n);
  std::vector<float> kept = residual, all;
  for (uint64_t call = 0; call < 5; ++call) {
    const auto in = message_of<float>(call * 100 + uint64_t(world.rank()), n);
    const std::vector<float> out = run(in, RmsNormConsume<float>{residual.data(), weight.data(), 1e-5f});
    for (uint64_t row = 0; row < rows; ++row) {
      double squares = 0;
      for (uint64_t col = 0; col < cols; ++col) {
        float& own = kept[row * cols + col];
        for (uint64_t rank = 0; rank < ranks; ++rank) {
          own += value_at<float>(call * 100 + rank, row * cols + col);
        }
        squares += double(own) * own;
      }
      const double scale = 1 / std::sqrt(squares / cols + 1e-5);
      for (uint64_t col = 0; col < cols; ++col) {
        const float expected = float(kept[row * cols + col] * scale * weight[col]);
        ASSERT_NEAR(out[row * cols + col], expected, 1e-5 * std::abs(expected)) << row << ", " << col;
      }
    }
    EXPECT_MESSAGE(residual, kept);
    all.insert(all.end(), out.begin(), out.end());
  }
  // All ranks have the same bits. This is checked at the end, because the check keeps ranks together.
  for (const auto& theirs : world.allgather(std::as_bytes(std::span(all)))) {
    ASSERT_EQ(std::memcmp(theirs.data(), all.data(), theirs.size()), 0);
  }
}

template <class Kernel>
void test_rms_norm(int ranks, uint32_t threads, uint32_t blocks, uint32_t rows, uint32_t cols,
                   LocalOptions options = {}) {
  run_local(
      ranks,
      [&](World& world) {
        const auto transport =
            direct_rendezvous(world, with_packets(rings(blocks, 2, 16), 2 * rows * cols * sizeof(float)));
        check_rms_norm(world, rows, cols, [&](const std::vector<float>& in, const auto& norm) {
          std::vector<float> out(in.size());
          launch(*transport, Kernel{{transport->table(), in.data(), out.data(), rows, cols, norm}},
                 {blocks, threads});
          return out;
        });
      },
      options);
}

void test_rms_norm_window(int ranks, uint32_t threads, uint32_t blocks, uint32_t rows, uint32_t cols,
                          LocalOptions options = {}) {
  run_local(
      ranks,
      [&](World& world) {
        const auto transport = direct_rendezvous(world, rings(1, 1, 16));
        const uint64_t n = uint64_t(rows) * cols;
        const OneSidedWindow window = OneSidedWindow::create(world, 2 * n * sizeof(float), 0, 2 * blocks);
        float* const input = reinterpret_cast<float*>(window.local());
        check_rms_norm(world, rows, cols, [&](const std::vector<float>& in, const auto& norm) {
          std::copy(in.begin(), in.end(), input);
          launch(*transport, RmsNormWindow<float>{window.view(), rows, cols, norm}, {blocks, threads});
          return std::vector<float>(input + n, input + 2 * n);
        });
      },
      options);
}

TEST(FusedForms, RmsNormOneShot) {
  for (const int ranks : {1, 2, 4, 9}) {  // nine: more peers than are handled together
    for (const uint32_t threads : {1u, 8u}) test_rms_norm<RmsNormOneShot<float>>(ranks, threads, 3, 7, 48);
  }
}

TEST(FusedForms, RmsNormTwoShot) {
  for (const int ranks : {1, 2, 4, 9}) {
    for (const uint32_t threads : {1u, 8u}) test_rms_norm<RmsNormTwoShot<float>>(ranks, threads, 2, 23, 48);
  }
}

TEST(FusedForms, RmsNormWindow) {
  for (const int ranks : {1, 2, 4, 9}) {
    for (const uint32_t threads : {1u, 8u}) test_rms_norm_window(ranks, threads, 2, 23, 48);
    test_rms_norm_window(ranks, 1, 8, 7, 48);  // not a row of each rank for each block
  }
}

TEST(FusedForms, InAnyOrder) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    LocalOptions options;
    options.seed = seed;
    test_rms_norm<RmsNormOneShot<float>>(3, 1, 1, 2, 16, options);
    test_rms_norm<RmsNormTwoShot<float>>(3, 2, 1, 4, 8, options);
    test_rms_norm_window(3, 2, 1, 4 + seed % 5, 8, options);
    if (seed < 100) test_transpose_window(3, 2, options);
  }
}

TEST(FusedForms, UnevenLinksAreRefused) {
  EXPECT_THROW(
      run_local(3,
                [&](World& world) {
                  const auto transport = direct_rendezvous(world, with_packets(rings(1, 2, 16), 256));
                  std::vector<float> data(8), weight(8), residual(8);
                  if (world.rank() < 2) {  // ranks 0 and 1 have had a message of packets, rank 2 none
                    const auto between = [&](const Group& group, const Deadline& deadline) {
                      Leg leg;
                      leg.in = data.data();
                      leg.out = data.data();
                      leg.bytes = 32;
                      const Endpoint& e = transport->table().at(1 - world.rank(), group.id);
                      return world.rank() == 0 ? send_packets<LL16, float>(group, e, leg, {}, deadline)
                                               : recv_packets<LL16, float>(group, e, leg, {}, deadline);
                    };
                    launch(*transport, between, {1, 1});
                  }
                  launch(*transport,
                         RmsNormOneShot<float>{{transport->table(),
                                                data.data(),
                                                data.data(),
                                                1,
                                                8,
                                                {residual.data(), weight.data(), 1e-5f}}},
                         {1, 1});
                }),
      std::logic_error);
}

}  // namespace
}  // namespace chorale
