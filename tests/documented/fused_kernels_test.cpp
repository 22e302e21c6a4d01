// Runs the snippets of docs/fused-kernels.md on the CPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "chorale/device.hpp"
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

/// This is the hook of the page. It adds up the squares of each row and stores the sums.
template <class T>
struct SquaresConsume {
  using block_hook = void;
  T* residual;
  float* squares_of_rows;

#define LEFT_OUT_1 \
  const uint32_t cols = ctx.cols, warps = group.size / part.size; \
  for (uint64_t row = part.id % warps; row < rows; row += warps) { \
    const T* const sum = reinterpret_cast<const T*>(tile.data) + row * cols; \
    T* const own = residual + ctx.index + row * cols; \
    float squares = 0;
#define LEFT_OUT_2 \
  squares = chorale::add_up(part, squares); \
  if (part.rank == 0) squares_of_rows[ctx.index / cols + row] = squares; \
  }
#include "tests/documented/shown/norm_hook.inc"
#undef LEFT_OUT_1
#undef LEFT_OUT_2
};

struct ReduceRows {
  EndpointTable table;
  const float* in;
  uint32_t rows, cols;
  SquaresConsume<float> hook;

  Stop operator()(const Group& group, const Deadline& deadline) const {
    Leg leg;
    leg.in = in;
    leg.bytes = rows * cols * sizeof(float);
    leg.tile_bytes = 2 * cols * sizeof(float);
    leg.cols = cols;
    return all_reduce<ReduceOp::sum, float>(group, table, leg, CopyProduce{}, hook, deadline);
  }
};

TEST(FusedKernelsPage, AnAllReduceAddsAResidual) {
  run_local(2, [](World& world) {
    const auto transport = small_rings(world);
    const uint32_t rows = 9, cols = 12;
    const std::vector<float> in = values_of(world.rank(), rows * cols), sums = sums_of(2, rows * cols);
    std::vector<float> residual = values_of(5, rows * cols), squares(rows);
    launch(*transport,
           ReduceRows{transport->table(), in.data(), rows, cols, {residual.data(), squares.data()}},
           {.blocks = 2});
    for (uint32_t row = 0; row < rows; ++row) {
      float expected = 0;
      for (uint32_t at = row * cols; at < (row + 1) * cols; ++at) {
        ASSERT_EQ(residual[at], sums[at] + value_at(5, at)) << at;
        expected += residual[at] * residual[at];
      }
      EXPECT_EQ(squares[row], expected) << row;
    }
    world.barrier();
  });
}

template <class T>
struct QuantisedGather {
  using Block = chorale::Fp8Block<>;
  EndpointTable table;
  const T* in;
  T* out;
  uint64_t elements;

  Stop operator()(const Group& group, const Deadline& deadline) const {
#include "tests/documented/shown/quantised.inc"
  }
};

TEST(FusedKernelsPage, AnAllGatherIsQuantised) {
  run_local(2, [](World& world) {
    const auto transport = small_rings(world);
    const std::vector<float> mine = values_of(world.rank(), 1000);
    std::vector<float> all(2 * mine.size());
    launch(*transport, QuantisedGather<float>{transport->table(), mine.data(), all.data(), mine.size()},
           {.blocks = 2});
    // Neighbouring values of an 8-bit float differ by at most a sixteenth.
    for (uint64_t at = 0; at < all.size(); ++at) {
      const float value = value_at(int(at / mine.size()), at % mine.size());
      ASSERT_NEAR(all[at], value, value / 16 + 0.1f) << at;
    }
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
