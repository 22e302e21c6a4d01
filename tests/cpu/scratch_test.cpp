/// \file
/// Tests the scratch that an executor allocates, for one message and for very many.

#include <spdlog/spdlog.h>

#include <random>

#include "chorale/needs.hpp"
#include "tests/cpu/shipped.hpp"
#include "tests/unit/message_of_error.hpp"

namespace chorale::test {
namespace {

/// Makes the log before there are threads, because its library does not show the thread sanitizer how it
/// guards the creation.
[[maybe_unused]] spdlog::logger* const log_of_all = spdlog::default_logger_raw();

constexpr uint64_t mib = uint64_t(1) << 20;

const Plan& ring() {
  static const Plan plan = load((source_dir() / "plans/shipped/allreduce_ring_2.json").string());
  return plan;
}

class Scratch : public testing::TestWithParam<std::filesystem::path> {};

uint64_t most_scratch(const Plan& plan, uint64_t bytes, uint64_t window) {
  uint64_t most = 0;
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank)
    most = std::max(most, needs_of(plan, rank, bytes, DType::u8, window).scratch_bytes);
  return most;
}

/// The sizes include messages that no machine can hold.
TEST_P(Scratch, stays_within_the_window_whatever_the_message) {
  const Plan plan = load(GetParam().string());
  const ScratchFormula formula = scratch_formula(plan, default_round_scratch);
  EXPECT_LE(formula.most, 64 * mib);
  const uint64_t parts = message_segments(plan);
  for (uint64_t units = 1; units * parts < uint64_t(1) << 50; units *= 7) {
    const uint64_t bytes = units * parts;
    if (bytes < plan.min_message_size || bytes > plan.max_message_size) continue;
    const uint64_t taken = most_scratch(plan, bytes, default_round_scratch);
    EXPECT_LE(taken, formula.most) << bytes;
    // Two rounds take at least half a window each.
    if (bytes < mib) continue;
    const double said = formula.per_message_byte * double(bytes), window = double(default_round_scratch);
    EXPECT_GE(double(taken), said < window ? 0.9 * said : 0.49 * window) << bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, Scratch, testing::ValuesIn(shipped_plans(8)), name_of_plan);

/// Runs `body` on all ranks of the ring, each with an executor of this configuration.
void on_all(const Config& config, const std::function<void(World&, Executor&)>& body) {
  run_local(2, [&](World& world) {
    Executor executor(world, config);
    body(world, executor);
  });
}

Arguments message(std::vector<char>& in, std::vector<char>& out, uint64_t bytes) {
  in.resize(std::max<size_t>(in.size(), bytes));
  out.resize(in.size());
  return {.in = in.data(), .out = out.data(), .bytes = bytes, .dtype = DType::u8};
}

TEST(Scratch, OfABindingIsWhatWasSaid) {
  for (const uint64_t window : {uint64_t(0), uint64_t(64) << 10, mib}) {
    for (const uint64_t bytes : {1000, 1 << 16, 5 << 20}) {
      Config config;
      config.round_scratch = window;
      on_all(config, [&](World&, Executor& executor) {
        std::vector<char> in, out;
        executor.prepare(ring(), message(in, out, bytes));
        const uint64_t said = most_scratch(ring(), bytes, window), taken = executor.scratch();
        EXPECT_GE(taken, said);
        EXPECT_LE(taken, said + 16384) << "signals and what else a binding has";
        if (window != 0) {
          EXPECT_LE(said, window);
        }
      });
    }
  }
}

TEST(Scratch, StaysFlatOverTenThousandCallsOfRandomSizes) {
  Config config;
  config.round_scratch = 4096;
  config.scratch = 256 << 10;
  config.bindings = 0;
  on_all(config, [](World&, Executor& executor) {
    std::mt19937 random(7);  // the same sizes on all ranks
    std::vector<char> in, out;
    uint64_t most = 0;
    for (int call = 0; call < 10000; ++call) {
      // Most sizes occur more than once.
      const uint64_t bytes = call % 8 == 0 ? 1 + random() % 16384 : 1 + random() % 16;
      executor.execute(ring(), message(in, out, bytes));
      most = std::max(most, executor.scratch());
    }
    EXPECT_LE(most, uint64_t(256) << 10);
    EXPECT_GE(most, uint64_t(128) << 10) << "little was kept";
  });
}

TEST(Scratch, IsGivenUpByTheCallsThatWereUsedLongestAgo) {
  const uint64_t one = [] {
    uint64_t bytes = 0;
    on_all({}, [&](World& world, Executor& executor) {
      std::vector<char> in, out;
      executor.prepare(ring(), message(in, out, 100000));
      if (world.rank() == 0) bytes = executor.scratch();
    });
    return bytes;
  }();
  Config config;
  config.scratch = 3 * one;  // enough for three calls of this size
  on_all(config, [&](World& world, Executor& executor) {
    std::vector<char> in, out;
    for (const uint64_t bytes : {99998, 99999, 100000}) executor.execute(ring(), message(in, out, bytes));
    const uint64_t full = executor.scratch();
    executor.execute(ring(), message(in, out, 99998));  // used again
    executor.execute(ring(), message(in, out, 99997));
    EXPECT_LE(executor.scratch(), full);
    // A call whose binding was evicted needs the other ranks.
    if (world.rank() == 0) {
      for (const uint64_t bytes : {99998, 100000, 99997}) executor.prepare(ring(), message(in, out, bytes));
    }
    world.barrier();
  });
}

TEST(Scratch, OfOneCallBeyondTheLimitIsRefusedOnAllRanks) {
  Config config;
  config.round_scratch = 0;
  config.scratch = 100000;
  on_all(config, [](World& world, Executor& executor) {
    std::vector<char> in, out;
    executor.execute(ring(), message(in, out, 1000));
    const std::string wrong =
        message_of_error<RunError>([&] { executor.execute(ring(), message(in, out, mib)); });
    EXPECT_NE(wrong.find("plan 'allreduce_ring': a message of 1048576 bytes takes"), wrong.npos) << wrong;
    EXPECT_NE(wrong.find("help: set CHORALE_SCRATCH to"), wrong.npos) << wrong;
    world.barrier();  // nothing was stopped
    executor.execute(ring(), message(in, out, 1000));
  });
  config.round_scratch = 64 << 10;  // with rounds it fits
  on_all(config, [](World&, Executor& executor) {
    std::vector<char> in, out;
    executor.execute(ring(), message(in, out, mib));
    EXPECT_LE(executor.scratch(), 100000u);
  });
}

}  // namespace
}  // namespace chorale::test
