// Runs the snippets of docs/experts.md on the CPU.

#include "chorale/fused/experts.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "chorale/error.hpp"
#include "chorale/launch_cpu.hpp"
#include "chorale/world.hpp"
#include "tests/documented/pages.hpp"

namespace chorale {
namespace {

/// Adds the number of the expert at this rank to each element.
void run_expert(uint32_t expert, bf16* row) {
  for (uint32_t at = 0; at < 64; ++at) row[at] = narrow<bf16>(widen(row[at]) + float(expert));
}

#include "tests/documented/shown/experts.inc"

TEST(ExpertsPage, TokensGoThereAndBack) {
  run_local(2, [](World& world) {
    const uint32_t n = 30;
    std::vector<bf16> x(n * 64), out(x.size());
    std::vector<int32_t> ids(n * 2);
    std::vector<float> weights(n * 2);
    for (uint32_t at = 0; at < x.size(); ++at) x[at] = narrow<bf16>(float(at % 16));
    for (uint32_t token = 0; token < n; ++token) {
      ids[2 * token] = int32_t(token % 16), ids[2 * token + 1] = int32_t((token + 5) % 16);
      weights[2 * token] = 1, weights[2 * token + 1] = 2;
    }
    mixture_of_experts(world, x.data(), ids.data(), weights.data(), n, out.data());
    for (uint32_t at = 0; at < x.size(); ++at) {
      const uint32_t token = at / 64;
      const auto result = [&](uint32_t expert) { return widen(x[at]) + float(expert % 8); };
      ASSERT_EQ(widen(out[at]), result(token % 16) + 2 * result((token + 5) % 16)) << at;
    }
  });
}

TEST(ExpertsPage, LostRanksAreMasked) {
  std::vector<World> worlds = World::local(3);
  const auto body = [&worlds](int rank) {
    World& world = worlds[size_t(rank)];
    fused::ExpertOptions options;
    options.experts_per_rank = options.top_k = 1;
    options.hidden = 8;
    options.max_tokens = 4;
    fused::ExpertExchange exchange(world, options);
    if (rank == 1) {
      const World left = std::move(world);
      return;
    }
    std::vector<int> lost;
    const auto report_lost = [&lost](const std::vector<int>& ranks) { lost = ranks; };
    const auto step = [](fused::ExpertExchange& on) {
      const std::vector<bf16> x(4 * 8, narrow<bf16>(2));
      std::vector<bf16> rows(on.max_rows() * 8), out(x.size());
      const int32_t ids[] = {0, 1, 2, 1};
      int32_t counts[1];
      fused::Dispatch<int32_t> there;
      there.tokens = x.data(), there.experts = ids, there.n = 4, there.rows = rows.data();
      there.counts = counts, there.room = on.max_rows();
      fused::dispatch(on, there);
      fused::combine<bf16>(on, {.rows = rows.data(), .out = out.data(), .n = 4});
      for (uint32_t token = 0; token < 4; ++token) EXPECT_EQ(widen(out[token * 8]), token % 2 == 0 ? 2 : 0);
    };
#include "tests/documented/shown/experts_over.inc"
    EXPECT_EQ(lost, std::vector<int>{1});
  };
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) ranks.emplace_back(body, rank);
  for (std::thread& rank : ranks) rank.join();
}

}  // namespace
}  // namespace chorale
