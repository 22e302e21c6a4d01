// These tests use the names that streams had when they were called lanes. The names stay for one version.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "chorale/dsl.hpp"
#include "chorale/json.hpp"
#include "chorale/launch.hpp"
#include "chorale/schedule.hpp"
#include "chorale/world.hpp"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace chorale {
namespace {

static_assert(std::is_same_v<dsl::LaneStyle, dsl::StreamStyle>);
static_assert(std::is_same_v<Lane, LaunchStream>);

/// Returns a plan that calls a function on two streams. A plan file holds the lines of calls, so old and new
/// names are on the same lines.
Plan filled(bool old) {
  dsl::Schedule schedule({.name = "filled", .ranks = {2}, .pool = 2});
  const dsl::Index ranks = schedule.ranks(), pool = old ? schedule.lanes() : schedule.streams();
  const dsl::Tensor out =
      schedule.output("out", DType::i32, {old ? dsl::over_lanes(ranks) : dsl::over_streams(ranks), 4});
  schedule.function("fill_one", 1, 0);
  const dsl::Lane comm = old ? schedule.lane("comm") : schedule.stream("comm");
  const dsl::Lane last = schedule.pool(pool - 1);
  schedule.main().fork({comm, last});
  comm.call("fill_one", {out[0]}, {});
  last.call("fill_one", {out[1]}, {});
  schedule.main().join({comm, last});
  dsl::Compiled compiled = dsl::Program(schedule).compile();
  EXPECT_EQ(render(compiled.plan, compiled.diagnostics), "");
  return std::move(compiled.plan);
}

TEST(OldNames, WriteTheSameSchedule) {
  EXPECT_EQ(write(filled(true)), write(filled(false)));
  EXPECT_EQ(write(dsl::build("ag_matmul_layout", {{"style", "pool"}, {"lanes", "2"}}).compile().plan),
            write(dsl::build("ag_matmul_layout", {{"style", "pool"}, {"streams", "2"}}).compile().plan));
  EXPECT_THROW(dsl::build("ag_matmul_layout", {{"lanes", "2"}, {"streams", "2"}}), std::invalid_argument);
}

TEST(OldNames, NumberTheStreamsOfCalls) {
  run_local(2, [](World& world) {
    std::atomic<uint32_t> seen{0};
    ScheduleArguments arguments;
    arguments.functions["fill_one"] = [&](const HostCall& call) {
      EXPECT_EQ(call.lane, call.stream_index);
      seen |= 1u << call.lane;
    };
    ScheduleRun schedule(world, filled(false), arguments);
    schedule.run();
    EXPECT_EQ(schedule.lanes(), (std::vector<std::string>{"main", "comm", "pool[0]", "pool[1]"}));
    EXPECT_EQ(schedule.lanes(), schedule.streams());
    EXPECT_EQ(seen, 1u << 1 | 1u << 3);
  });
}

}  // namespace
}  // namespace chorale

#pragma GCC diagnostic pop
