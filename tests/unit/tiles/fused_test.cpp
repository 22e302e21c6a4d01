// These tests run the programs of docs/fused-kernels.md.

#include <algorithm>
#include <cstdlib>

#include "support.hpp"
#include "tests/fused/quantised_all_gather.hpp"
#include "tests/fused/rms_norm_all_reduce.hpp"
#include "tests/fused/transpose_all_to_all.hpp"

namespace chorale {
namespace {

using namespace test;

TEST(Fused, TransposeAllToAll) {
  for (const uint32_t threads : {1u, 8u}) {
    run_local(4, [&](World& world) {
      const uint32_t rows = 37, cols = 21;
      const auto transport = direct_rendezvous(world, rings(3, 2, 256));
      const auto in = message_of<float>(uint64_t(world.rank()), rows * cols * 4);
      std::vector<float> out(in.size()), expected(in.size());
      launch(*transport, TransposeAllToAll<float>{transport->table(), in.data(), out.data(), rows, cols},
             {3, threads});
      for (uint32_t peer = 0; peer < 4; ++peer) {
        const auto theirs = message_of<float>(peer, in.size());
        for (uint32_t row = 0; row < rows; ++row) {
          for (uint32_t col = 0; col < cols; ++col) {
            expected[(peer * cols + col) * rows + row] =
                theirs[row * cols * 4 + uint32_t(world.rank()) * cols + col];
          }
        }
      }
      EXPECT_MESSAGE(out, expected);
    });
  }
}

TEST(Fused, RmsNormAllReduce) {
  for (const uint32_t threads : {1u, 8u}) {
    run_local(4, [&](World& world) {
      const uint32_t rows = 23, cols = 48;
      const auto transport = direct_rendezvous(world, rings(2, 2, 2 * cols * sizeof(float) + 32));
      const auto in = message_of<float>(uint64_t(world.rank()), rows * cols);
      const auto weight = message_of<float>(77, cols);
      auto residual = message_of<float>(88, rows * cols);
      std::vector<float> out(in.size()), expected(in.size()), kept(in.size());
      launch(*transport,
             RmsNormAllReduce<float>{transport->table(),
                                     in.data(),
                                     out.data(),
                                     rows,
                                     cols,
                                     transport->slot_bytes(),
                                     {residual.data(), weight.data(), 1e-5f}},
             {2, threads});
      for (uint32_t row = 0; row < rows; ++row) {
        float squares = 0;
        for (uint32_t col = 0; col < cols; ++col) {
          const uint32_t at = row * cols + col;
          float sum = 0;
          for (uint64_t rank = 0; rank < 4; ++rank) sum += value_at<float>(rank, at);
          kept[at] = sum + value_at<float>(88, at);
          squares += kept[at] * kept[at];
        }
        const float scale = 1.0f / std::sqrt(squares / float(cols) + 1e-5f);
        for (uint32_t col = 0; col < cols; ++col)
          expected[row * cols + col] = kept[row * cols + col] * scale * weight[col];
      }
      EXPECT_MESSAGE(residual, kept);
      // The squares of a row are added up in an order that depends on the number of threads.
      for (size_t at = 0; at < out.size(); ++at)
        EXPECT_NEAR(out[at], expected[at], 1e-5f * std::abs(expected[at])) << at;
    });
  }
}

TEST(Fused, QuantisedAllGather) {
  for (const uint32_t threads : {1u, 8u}) {
    run_local(4, [&](World& world) {
      const uint64_t n = 128 * 7 + 40;
      const auto transport = direct_rendezvous(world, rings(2, 2, 288));
      const auto of = [&](uint64_t rank) {
        auto values = message_of<float>(rank, n);
        for (float& value : values) value = value * 0.37f - 100;
        return values;
      };
      const auto in = of(uint64_t(world.rank()));
      std::vector<float> out(n * 4 + 1, -1);
      launch(*transport, QuantisedAllGather<float>{transport->table(), in.data(), out.data(), n},
             {2, threads});
      EXPECT_EQ(out[n * 4], -1);
      for (uint64_t rank = 0; rank < 4; ++rank) {
        const auto theirs = of(rank);
        for (uint64_t block = 0; block < n; block += 128) {
          float largest = 0;
          const uint64_t end = std::min(n, block + 128);
          for (uint64_t at = block; at < end; ++at) largest = std::max(largest, std::abs(theirs[at]));
          const float scale = largest / 448.0f;
          for (uint64_t at = block; at < end; ++at) {
            ASSERT_EQ(out[rank * n + at], widen(narrow<fp8_e4m3>(theirs[at] / scale)) * scale);
          }
        }
      }
    });
  }
}

}  // namespace
}  // namespace chorale
