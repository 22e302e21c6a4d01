// Runs the snippets of docs/fused-kernels.md on the CPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "chorale/device.hpp"
#include "chorale/fused/quantised.hpp"
#include "chorale/fused/rms_norm.hpp"
#include "chorale/launch_cpu.hpp"
#include "chorale/tuner.hpp"
#include "chorale/world.hpp"
#include "tests/documented/pages.hpp"
#include "tests/fused/expert_exchange.hpp"

namespace chorale::test {
namespace {

std::unique_ptr<Transport> small_rings(World& world) {
  return direct_rendezvous(world, {.per_peer_bytes = 1 << 16, .max_channels = 8});
}

TEST(FusedKernelsPage, SendAndReceive) {
  run_local(2, [](World& world) {
    std::vector<float> sent = values_of(0, 3000), came(sent.size());
    const float* const x = sent.data();
    float* const y = came.data();
    const uint64_t n = sent.size();
#include "tests/documented/shown/send_and_receive.inc"
    for (uint64_t at = 0; at < n && world.rank() == 1; ++at) ASSERT_EQ(came[at], sent[at] + 1) << at;
    world.barrier();
  });
}

#include "tests/documented/shown/max_hook_types.inc"

TEST(FusedKernelsPage, AHookKeepsTheLarger) {
  run_local(2, [](World& world) {
    const auto transport = small_rings(world);
    const std::vector<float> sent = values_of(0, 3000), before = values_of(1, 3000);
    std::vector<float> kept = before;
    float* const y = kept.data();
    const uint64_t n = kept.size();
    if (world.rank() == 0) chorale::send(*transport, sent.data(), n, 1);
#include "tests/documented/shown/max_hook.inc"
    for (uint64_t at = 0; at < n && world.rank() == 1; ++at)
      ASSERT_EQ(kept[at], std::max(sent[at], before[at])) << at;
    world.barrier();
  });
}

#include "tests/documented/shown/transpose_types.inc"

TEST(FusedKernelsPage, AnAllToAllTransposes) {
  run_local(3, [](World& world) {
    const auto transport = small_rings(world);
    const uint32_t rows = 5, cols = 7;
    const std::vector<float> matrix = values_of(world.rank(), rows * 3 * cols);
    std::vector<float> transposed(matrix.size());
    const float* const in = matrix.data();
    float* const out = transposed.data();
#include "tests/documented/shown/transpose.inc"
    for (uint32_t peer = 0; peer < 3; ++peer)
      for (uint32_t row = 0; row < rows; ++row)
        for (uint32_t col = 0; col < cols; ++col)
          ASSERT_EQ(out[(peer * cols + col) * rows + row],
                    value_at(int(peer), row * 3 * cols + uint32_t(world.rank()) * cols + col));
    world.barrier();
  });
}

#include "tests/documented/shown/epilogue_types.inc"

TEST(FusedKernelsPage, ReadyMadeKernels) {
  run_local(3, [](World& world) {
    const uint32_t rows = 5, cols = 128;
    const uint64_t n = rows * cols;
    const std::vector<float> mine = values_of(world.rank(), n), all = sums_of(3, n), ones(cols, 1.0f);
    std::vector<float> kept = values_of(5, n), normalised(n), reduced(n), of_rows(rows);
    const float *const in = mine.data(), *const weight = ones.data();
    float *const out = normalised.data(), *const sums = reduced.data(), *const residual = kept.data();
#include "tests/documented/shown/ready_made.inc"
    float* const largest = of_rows.data();
#include "tests/documented/shown/epilogue.inc"
    for (uint32_t row = 0; row < rows; ++row) {
      float squares = 0, plain_squares = 0, most = 0;
      for (uint64_t at = row * cols; at < (row + 1) * cols; ++at) {
        const float sum = all[at] + value_at(5, at);
        ASSERT_EQ(residual[at], sum) << at;
        squares += sum * sum;
        plain_squares += all[at] * all[at];
        most = std::max(most, all[at]);
        ASSERT_NEAR(sums[at], all[at], fused::quantised_error<fp8_e4m3>(45, 3, 1)) << at;
      }
      for (uint64_t at = row * cols; at < (row + 1) * cols; ++at)
        ASSERT_NEAR(out[at], residual[at] / std::sqrt(squares / cols), 1e-4f);
      EXPECT_NEAR(of_rows[row], most / std::sqrt(plain_squares / cols), 1e-4f);
    }
    world.barrier();
  });
}

#include "tests/documented/shown/norm_types.inc"

TEST(FusedKernelsPage, AnAllReduceAddsAResidualAndNormalises) {
  run_local(2, [](World& world) {
    const auto transport = small_rings(world);
    const uint32_t rows = 9, cols = 12;
    const std::vector<float> mine = values_of(world.rank(), rows * cols), all = sums_of(2, rows * cols);
    const std::vector<float> ones(cols, 0.5f);
    std::vector<float> kept = values_of(5, rows * cols), normalised(rows * cols);
    const float *const in = mine.data(), *const weight = ones.data();
    float *const out = normalised.data(), *const residual = kept.data();
#include "tests/documented/shown/norm.inc"
    for (uint32_t row = 0; row < rows; ++row) {
      float squares = 0;
      for (uint32_t at = row * cols; at < (row + 1) * cols; ++at) {
        ASSERT_EQ(residual[at], all[at] + value_at(5, at)) << at;
        squares += residual[at] * residual[at];
      }
      for (uint32_t at = row * cols; at < (row + 1) * cols; ++at)
        ASSERT_NEAR(out[at], residual[at] / std::sqrt(squares / cols) / 2, 1e-4f) << at;
    }
    world.barrier();
  });
}

#include "tests/documented/shown/quantised_gather_types.inc"

TEST(FusedKernelsPage, AnAllGatherIsQuantised) {
  run_local(2, [](World& world) {
    const auto transport = small_rings(world);
    const std::vector<float> mine = values_of(world.rank(), 1000);
    std::vector<float> all(2 * mine.size());
    const float* const in = mine.data();
    float* const out = all.data();
    const uint64_t n = mine.size();
#include "tests/documented/shown/quantised_gather.inc"
    // Neighbouring values of an 8-bit float differ by at most a sixteenth.
    for (uint64_t at = 0; at < all.size(); ++at) {
      const float value = value_at(int(at / mine.size()), at % mine.size());
      ASSERT_NEAR(all[at], value, value / 16 + 0.1f) << at;
    }
    world.barrier();
  });
}

#include "tests/documented/shown/quantised_sum_types.inc"

TEST(FusedKernelsPage, AnAllReduceIsQuantised) {
  run_local(3, [](World& world) {
    const auto transport =
        direct_rendezvous(world, {.per_peer_bytes = 1 << 10, .max_channels = 8, .packet_bytes = 4096});
    const std::vector<float> mine = values_of(world.rank(), 16 * 37), all = sums_of(3, mine.size());
    std::vector<float> reduced(mine.size());
    const float* const in = mine.data();
    float* const sums = reduced.data();
    const uint64_t n = mine.size();
#include "tests/documented/shown/quantised_sum.inc"
    for (uint64_t at = 0; at < n; ++at)
      ASSERT_NEAR(sums[at], all[at], fused::quantised_error<int8_t>(45, 3, 1)) << at;
    world.barrier();
  });
}

#include "tests/documented/shown/place_rows_types.inc"

TEST(FusedKernelsPage, AnAllGatherPermutes) {
  run_local(3, [](World& world) {
    const auto transport = small_rings(world);
    const uint32_t rows = 7, cols = 5;
    const std::vector<float> mine = values_of(world.rank(), rows * cols);
    std::vector<float> all(3 * mine.size());
    std::vector<int32_t> places;
    for (int32_t row = 0; row < 21; ++row) places.push_back(row * 5 % 21);
    const float* const in = mine.data();
    float* const out = all.data();
    const int32_t* const place = places.data();
#include "tests/documented/shown/place_rows.inc"
    for (uint64_t row = 0; row < 21; ++row)
      for (uint64_t col = 0; col < cols; ++col)
        ASSERT_EQ(out[uint64_t(places[row]) * cols + col],
                  value_at(int(row / rows), row % rows * cols + col));
    world.barrier();
  });
}

namespace shown {
#include "tests/documented/shown/dispatch_types.inc"
}  // namespace shown

/// Token t of a rank goes to rank t % 3.
TEST(FusedKernelsPage, TokensGoToTheirExperts) {
  run_local(3, [](World& world) {
    const auto transport = small_rings(world);
    const uint32_t cols = 6, tokens = 10;
    const std::vector<float> mine = values_of(world.rank(), tokens * cols);
    const std::vector<int32_t> order{0, 3, 6, 9, 1, 4, 7, 2, 5, 8}, to{4, 3, 3};
    std::vector<int32_t> came(3);
    std::vector<float> arrived(3 * tokens * cols), expected;
    launch(*transport,
           shown::DispatchTokens<float>{transport->table(), mine.data(), arrived.data(), cols, order.data(),
                                        to.data(), came.data(), 3 * tokens},
           {.blocks = 2});
    for (int rank = 0; rank < 3; ++rank)
      for (uint32_t token = uint32_t(world.rank()); token < tokens; token += 3)
        for (uint32_t col = 0; col < cols; ++col) expected.push_back(value_at(rank, token * cols + col));
    EXPECT_EQ(came, std::vector<int32_t>(3, to[size_t(world.rank())]));
    arrived.resize(expected.size());
    EXPECT_EQ(arrived, expected);
    world.barrier();
  });
}

TEST(FusedKernelsPage, ATableChoosesBlocksAndSlots) {
  const Folder here;
  TuneTable made;
  made.set({.kind = "all_to_all",
            .world = 8,
            .bytes = 4096,
            .device = "NVIDIA H200",
            .backend = "cuda",
            .variant = "transpose",
            .default_hooks = false},
           {.blocks = 48, .threads = 512, .slots = 8}, 1000);
  made.save("plans/tuned/NVIDIA_H200.json");
  const uint64_t n = 10000;
#include "tests/documented/shown/tuned_launch.inc"
  EXPECT_EQ(rings.depth, 8u);
  EXPECT_EQ(rings.max_channels, 48u);
  EXPECT_EQ(rings.per_peer_bytes, 64u << 20);
  EXPECT_EQ(blocks.blocks, 48u);
  EXPECT_EQ(blocks.threads, 512u);
}

}  // namespace
}  // namespace chorale::test
