// Runs the snippet of docs/host-schedules.md that is not a complete program on the CPU.

#include <gtest/gtest.h>

#include <stdexcept>

#include "chorale/dsl.hpp"
#include "chorale/schedule.hpp"
#include "tests/documented/pages.hpp"

namespace chorale::test {
namespace {

/// Forwards every rank's data to the right, one slice per turn, and copies each slice that has arrived.
Plan passed_on_by_tokens() {
  using namespace dsl;
  using dsl::Group;  // not the Group of kernels
  Schedule schedule({.name = "passed_on", .ranks = {3}});
  const Index rank = schedule.rank(), ranks = schedule.ranks(), n = schedule.param("n", 500);
  const Tensor mine = schedule.input("mine", DType::f32, {over_ranks(ranks), ranks, n});
  const Tensor came = schedule.temporary("came", DType::f32, {ranks, n});
  const Tensor all = schedule.output("all", DType::f32, {ranks, n});
  Stream comm = schedule.stream("comm"), comp = schedule.stream("comp");
  comm.after({schedule.main()});
  comp.after({schedule.main()});
#define LEFT_OUT_1 \
  group.recv(came[i], (rank - 1) % ranks); \
  group.send(mine.select(0, 0).select(1, i), (rank + 1) % ranks);
#define LEFT_OUT_2 comp.copy(all[j], came[j]);
#include "tests/documented/shown/tokens.inc"
  schedule.main().after({comm, comp});
  Compiled compiled = Program(schedule).compile();
  if (!compiled.ok()) throw std::invalid_argument(render(compiled.plan, compiled.diagnostics));
  return std::move(compiled.plan);
}

TEST(HostSchedulesPage, TokensWithAnIndex) {
  const Plan plan = passed_on_by_tokens();
  run_local(3, [&](World& world) {
    std::vector<float> mine = values_of(world.rank(), 1500), all(mine.size());
    ScheduleRun schedule(world, plan, {.buffers = {{"mine", mine.data()}, {"all", all.data()}}});
    schedule.run();
    EXPECT_EQ(all, values_of((world.rank() + 2) % 3, 1500));
    world.barrier();
  });
}

}  // namespace
}  // namespace chorale::test
