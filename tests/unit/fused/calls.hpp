/// \file
/// Has what the tests of all fused kernels share: schedules, refusals and ranks that do not take part.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chorale/fused/buffers.hpp"
#include "chorale/launch_cpu.hpp"
#include "chorale/world.hpp"
#include "tests/forked.hpp"
#include "tests/unit/message_of_error.hpp"
#include "tests/unit/tiles/support.hpp"

namespace chorale::test {

inline constexpr int all_ranks[] = {1, 2, 3, 4, 9};  // nine: more peers than are handled together
inline constexpr uint32_t all_threads[] = {1, 8};

inline fused::Setup setup_of(fused::Form form, uint32_t blocks, uint32_t threads) {
  fused::Setup setup;
  setup.form = form;
  setup.blocks = blocks;
  setup.threads = threads;
  return setup;
}

/// Returns a float with a random sign, mantissa and one of `span` exponents around 1.
inline float random_float(uint64_t message, uint64_t index, int span) {
  const uint64_t bits = mix(message * 1000003 + index + 1);
  const float value = 1.0f + float(bits % 8388608) / 8388608.0f;
  return std::ldexp((bits >> 40) % 2 != 0 ? -value : value, int((bits >> 41) % uint64_t(span)) - span / 2);
}

template <class T>
std::vector<T> random_message(uint64_t message, uint64_t n, int span = 8) {
  std::vector<T> values(n);
  for (uint64_t at = 0; at < n; ++at) values[at] = narrow<T>(random_float(message, at, span));
  return values;
}

/// Expects that all ranks have the same bits. It keeps the ranks together, so call it after the last launch.
template <class T>
void expect_same_on_all_ranks(World& world, const std::vector<T>& values) {
  for (const auto& theirs : world.allgather(std::as_bytes(std::span(values)))) {
    ASSERT_EQ(theirs.size(), values.size() * sizeof(T));
    ASSERT_TRUE(theirs.empty() || std::memcmp(theirs.data(), values.data(), theirs.size()) == 0);
  }
}

/// Runs `body` in 1000 schedules.
inline void in_any_order(int ranks, const std::function<void(World&, uint64_t seed)>& body) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    LocalOptions options;
    options.seed = seed;
    run_local(
        ranks, [&](World& world) { body(world, seed); }, options);
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

/// Expects that a call ends in a named error if the last rank never makes it, and that the object works again
/// after resets. `made` makes the object, and call(object, world, number) makes one call with data of its own
/// and checks it.
template <class Made, class Call>
void expect_named_errors(const Made& made, const Call& call) {
  // The last rank leaves instead of making the second call.
  for (const uint64_t seed : {0, 1, 2, 3}) {
    LocalOptions options;
    options.seed = seed;
    std::vector<std::optional<RunError::Reason>> reasons(3);
    run_local(
        3,
        [&](World& world) {
          auto object = made(world);
          call(object, world, 0);
          if (world.rank() == 2) return;
          try {
            call(object, world, 1);
          } catch (const RunError& error) {
            reasons[size_t(world.rank())] = error.reason;
          }
        },
        options);
    EXPECT_EQ(reasons[0], RunError::Reason::deadlock) << "seed " << seed;
    EXPECT_EQ(reasons[1], RunError::Reason::deadlock) << "seed " << seed;
  }
  // A rank aborts instead of making the second call. What the others have sent must not count later.
  for (uint64_t seed = 0; seed < 20; ++seed) {
    LocalOptions options;
    options.seed = seed;
    run_local(
        3,
        [&](World& world) {
          auto object = made(world);
          call(object, world, 0);
          world.barrier();  // the abort must not come into this call
          std::optional<RunError::Reason> reason;
          try {
            if (world.rank() != 1) call(object, world, 1);
            world.abort("on purpose");
            world.check();
          } catch (const RunError& error) {
            reason = error.reason;
          }
          ASSERT_TRUE(reason == RunError::Reason::aborted || reason == RunError::Reason::deadlock);
          world.reset();
          object.reset();
          for (uint64_t number = 2; number < 5; ++number) call(object, world, number);
          world.barrier();
        },
        options);
  }
}

/// Expects that a call of three processes ends in a named error if the last of them dies instead of making
/// it. A test that calls this has `Processes` in its name, because the thread sanitizer does not understand
/// processes that were forked beside fibers or threads. The arguments are those of expect_named_errors().
template <class Made, class Call>
void expect_lost_process(const Made& made, const Call& call) {
  const std::string address = "shm://fused_" + std::to_string(getpid());
  const std::vector<int> codes = forked(3, [&](int rank) {
    JoinOptions options;
    options.timeout = std::chrono::seconds(60);
    World world = World::join(address, rank, 3, options);
    auto object = made(world);
    call(object, world, 0);
    if (rank == 2) _exit(7);
    try {
      call(object, world, 1);
    } catch (const RunError& error) {
      return error.reason == RunError::Reason::peer_lost ? 1 : 2;
    }
    return 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{1, 1, 7}));
}

}  // namespace chorale::test
