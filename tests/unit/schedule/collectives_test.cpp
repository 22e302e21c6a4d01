// These tests run collectives of host schedules.

#include <gtest/gtest.h>

#include <utility>

#include "chorale/json.hpp"
#include "chorale/schedule.hpp"
#include "tests/unit/compiler/schedule/text.hpp"
#include "tests/unit/thrown.hpp"

namespace chorale::test {
namespace {

/// Collectives sum with the built-in function. Calls in the schedule use the application's function.
TEST(ScheduleCollectives, AFunctionOfTheApplicationDoesNotChangeThem) {
  const Plan plan = read(schedule::plan_with(
      R"({"tensors":[{"name":"x","dtype":"i32","shape":[2,3],"role":"in"},{"name":"y","dtype":"i32","shape":[2,3],"role":"out"},
      {"name":"z","dtype":"i32","shape":[3],"role":"out"}],"functions":[{"name":"sum","writes":1,"reads":1}],"body":[
      {"op":"collective","token":1,"kind":"allreduce","dst":["y"],"src":["x"]},{"op":"wait","token":1},
      {"op":"call","fn":"sum","writes":[["z"]],"reads":[["x"]]}]})"));
  run_local(2, [&](World& world) {
    ScheduleArguments arguments;
    int calls = 0;
    arguments.functions["sum"] = [&](const HostCall& call) {
      ++calls;
      for (int at = 0; at < 3; ++at) static_cast<int32_t*>(call.writes[0].data)[at] = -1;
    };
    ScheduleRun schedule(world, plan, arguments);
    int32_t* const x = static_cast<int32_t*>(schedule.buffer("x"));
    for (int at = 0; at < 6; ++at) x[at] = at + 10 * world.rank();
    schedule.run();
    schedule.synchronize();
    const int32_t *const y = static_cast<int32_t*>(schedule.buffer("y")), *const z = static_cast<int32_t*>(
                                                                              schedule.buffer("z"));
    for (int at = 0; at < 6; ++at) EXPECT_EQ(y[at], 2 * at + 10) << at;
    for (int at = 0; at < 3; ++at) EXPECT_EQ(z[at], -1) << at;
    EXPECT_EQ(calls, 1);
    world.barrier();
  });
}

/// The operation `fill` is not a call, so the application's function of this name does not replace it.
TEST(ScheduleCollectives, AFunctionOfTheApplicationDoesNotChangeFill) {
  const Plan plan = read(schedule::plan_with(
      R"({"ranks":[1],"tensors":[{"name":"y","dtype":"i32","shape":[3],"role":"out"},{"name":"z","dtype":"i32","shape":[3],"role":"out"}],
      "functions":[{"name":"fill","writes":1,"reads":0}],"body":[
      {"op":"fill","dst":["y"],"value":7},{"op":"call","fn":"fill","writes":[["z"]],"reads":[]}]})"));
  run_local(1, [&](World& world) {
    ScheduleArguments arguments;
    arguments.functions["fill"] = [](const HostCall& call) {
      for (int at = 0; at < 3; ++at) static_cast<int32_t*>(call.writes[0].data)[at] = -1;
    };
    ScheduleRun schedule(world, plan, arguments);
    schedule.run();
    schedule.synchronize();
    EXPECT_EQ(static_cast<int32_t*>(schedule.buffer("y"))[0], 7);
    EXPECT_EQ(static_cast<int32_t*>(schedule.buffer("z"))[0], -1);
  });
}

/// The rule that a temporary is zero again does not depend on the application's versions of `zero` and
/// `fill`.
TEST(ScheduleCollectives, AnotherZeroIsNotTakenForOne) {
  for (const std::string name : {"zero", "fill"}) {
    const Plan plan = read(schedule::plan_with(
        R"({"ranks":[1],"tensors":[{"name":"x","dtype":"i32","shape":[3],"role":"in"},{"name":"y","dtype":"i32","shape":[3],"role":"out"},
        {"name":"t","dtype":"i32","shape":[3],"role":"temp","zero":true}],"body":[
        {"op":"copy","dst":["y"],"src":["t"]},{"op":"copy","dst":["t"],"src":["x"]},
        {"op":"call","fn":")" +
        name + R"(","writes":[["t"]],"reads":[]}]})"));
    run_local(1, [&](World& world) {
      ScheduleArguments arguments;
      ScheduleRun built_in(world, plan, arguments);
      arguments.functions[name] = [](const HostCall&) {};
      EXPECT_NE(
          thrown([&] { ScheduleRun schedule(world, plan, arguments); }).find("zero in the first run only"),
          std::string::npos)
          << name;
    });
  }
}

/// A product over an empty k is zero, and zero rows give no rows.
TEST(ScheduleExtents, MayBeZero) {
  for (const auto& [k, n] : {std::pair(0, 2), std::pair(3, 0)}) {
    const Plan plan = read(schedule::plan_with(
        R"({"params":{"k":)" + std::to_string(k) + R"(,"n":)" + std::to_string(n) +
        R"(},"tensors":[{"name":"a","dtype":"f32","shape":[4,"k"],"role":"in"},{"name":"b","dtype":"f32","shape":["k","n"],"role":"in"},
        {"name":"t","dtype":"f32","shape":[4,"n"],"role":"temp"},{"name":"c","dtype":"f32","shape":[4,"n"],"role":"out"}],"body":[
        {"op":"call","fn":"matmul","writes":[["t"]],"reads":[["a"],["b"]]},
        {"op":"group","token":1,"do":[{"op":"send","src":["t"],"peer":["-",1,"rank"]},{"op":"recv","dst":["c"],"peer":["-",1,"rank"]}]},
        {"op":"wait","token":1}]})"));
    for (const schedule::Mover mover :
         {schedule::Mover::ce_put, schedule::Mover::ce_get, schedule::Mover::plan}) {
      run_local(2, [&, n = n](World& world) {
        std::vector<float> c(size_t(4 * n) + 1, 7);
        ScheduleRun schedule(world, plan, {.buffers = {{"c", c.data()}}, .mover = mover});
        for (int run = 0; run < 3; ++run) schedule.run();
        schedule.synchronize();
        for (int at = 0; at < 4 * n; ++at) EXPECT_EQ(c[size_t(at)], 0) << at;
        EXPECT_EQ(c.back(), 7);
        world.barrier();
      });
    }
  }
}

}  // namespace
}  // namespace chorale::test
