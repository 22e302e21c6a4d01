// The snippet of docs/host-schedules.md that is no program of its own, run on the CPU.

#include <gtest/gtest.h>

#include "chorale/dsl.hpp"
#include "chorale/schedule.hpp"
#include "tests/documented/pages.hpp"

namespace chorale::test {
namespace {

/// Each turn of the first loop brings a rank's slice, and that of the second copies it when it is there.
Plan gathered_by_tokens() {
  using namespace dsl;
  using dsl::Group;  // not that of kernels
  Schedule schedule({.name = "gathered", .ranks = {3}});
  const Index rank = schedule.rank(), ranks = schedule.ranks(), n = schedule.param("n", 500);
  const Tensor mine = schedule.input("mine", DType::f32, {over_ranks(ranks), n});
  const Tensor came = schedule.temporary("came", DType::f32, {over_lanes(ranks), n});
  const Tensor all = schedule.output("all", DType::f32, {over_lanes(ranks), n});
  Lane comm = schedule.lane("comm"), comp = schedule.lane("comp");
  comm.after({schedule.main()});
  comp.after({schedule.main()});
#define LEFT_OUT_1 \
  group.recv(came[(rank - i) % ranks], (rank - i) % ranks); \
  group.send(mine, (rank + i) % ranks);
#define LEFT_OUT_2 comp.copy(all[(rank - j) % ranks], came[(rank - j) % ranks]);
#include "tests/documented/shown/tokens.inc"
  schedule.main().after({comm, comp});
  Compiled compiled = Program(schedule).compile();
  EXPECT_TRUE(compiled.ok()) << render(compiled.plan, compiled.diagnostics);
  return std::move(compiled.plan);
}

TEST(HostSchedulesPage, TokensWithAnIndex) {
  const Plan plan = gathered_by_tokens();
  run_local(3, [&](World& world) {
    std::vector<float> mine = values_of(world.rank(), 500), all(1500), expected;
    for (int rank = 0; rank < 3; ++rank)
      for (const float value : values_of(rank, 500)) expected.push_back(value);
    ScheduleRun schedule(world, plan, {.buffers = {{"mine", mine.data()}, {"all", all.data()}}});
    schedule.run();
    EXPECT_EQ(all, expected);
    world.barrier();
  });
}

}  // namespace
}  // namespace chorale::test
