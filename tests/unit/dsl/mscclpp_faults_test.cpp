// MSCCL++'s compiler gets these cases wrong outside its rewrites, and here they are right.
// (tests/unit/compiler/rewrites has the faults of its rewrites.) The numbers are our numbers of
// its faults. D20 to D22 are faults of its sources, texts and tests.

#include <chorale/json.hpp>

#include "helpers.hpp"

namespace chorale::dsl {
namespace {

TEST(MscclppFaults, D13_no_replication_can_be_asked_for) {
  for (const int64_t instances : {1, 2}) {
    Program program({.name = "none",
                     .collective = TestCollective{.ranks = 1, .input = 2, .output = 2},
                     .instances = instances,
                     .replication = ReplicationPolicy::none});
    Rank me = program.rank(0);
    me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], 0);
    const Compiled compiled = program.compile();
    ASSERT_TRUE(compiled.ok()) << render(compiled.plan, compiled.diagnostics);
    EXPECT_EQ(compiled.plan.gpus[0].threadblocks.size(), 1u);
  }
}

Program with_barrier() {
  Program program = two_ranks();
  for (const int64_t rank : {0, 1}) program.rank(rank).barrier({0, 1});
  return program;
}

TEST(MscclppFaults, D14_and_D15_and_D19_plans_depend_on_their_program_alone) {
  const Program first = with_barrier(), second = with_barrier();
  const std::string plan = write(first.compile().plan);
  EXPECT_EQ(write(first.compile().plan), plan);
  EXPECT_EQ(write(second.compile().plan), plan);
}

TEST(MscclppFaults, D16_signals_are_counted_by_channel_and_by_turns) {
  Program crossed = two_ranks();
  MemoryChannel to[] = {{crossed, 1, 0}, {crossed, 1, 0}}, from[] = {{crossed, 0, 1}, {crossed, 0, 1}};
  to[0].signal(0);
  from[1].wait(0);
  EXPECT_EQ(crossed.compile().diagnostics.size(), 2u);

  Program looped = two_ranks();
  MemoryChannel there(looped, 1, 0), back(looped, 0, 1);
  looped.loop(64, 1, [&] { there.signal(0); });
  back.wait(0);
  const Compiled compiled = looped.compile();
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.diagnostics[0].check, "pairing");
}

TEST(MscclppFaults, D17_and_D18_numbers_have_lower_bounds_and_a_message) {
  Program program = two_ranks();
  program.rank(5);
  program.rank(-1);
  MemoryChannel(program, -1, 0);
  Buffer(program, 0, -4);
  Rank me = program.rank(0);
  me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], -1);
  program.loop(0, 1, [] {});
  EXPECT_EQ(texts(program).size(), 6u);
  EXPECT_EQ(texts(program)[0], "rank is 5, but the program's ranks are 0 to 1");
}

}  // namespace
}  // namespace chorale::dsl
