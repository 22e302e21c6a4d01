// The schedules of plans/schedules: they pass their checks, and survive a round trip.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "chorale/dsl.hpp"
#include "chorale/host/dump.hpp"
#include "chorale/json.hpp"

namespace chorale::dsl {
namespace {

TEST(Schedules, PassTheirChecksAndSurviveARoundTrip) {
  for (const RegisteredProgram& one : programs()) {
    const Compiled compiled = build(one.name).compile();
    EXPECT_EQ(render(compiled.plan, compiled.diagnostics), "") << one.name;
    const std::string text = write(compiled.plan);
    EXPECT_EQ(write(read(text)), text) << one.name;
  }
}

TEST(Schedules, TheOrderOfSlicesIsFree) {
  for (const char* order : {"linear", "rotated"}) {
    const Compiled compiled = build("ag_matmul_p2p", {{"order", order}}).compile();
    EXPECT_EQ(render(compiled.plan, compiled.diagnostics), "") << order;
  }
  EXPECT_THROW(build("ag_matmul_p2p", {{"order", "ring"}}), std::invalid_argument);
}

/// Allocate, current lane, for, for: the top level of nvFuser's lowered program.
TEST(Schedules, TheDumpReadsLikeTheOriginal) {
  const Plan plan = build("allgather_p2p").compile().plan;
  EXPECT_EQ(host::dump(plan.name, *plan.extension.host),
            R"(%HostProgram allgather_p2p { ranks=D lanes=4 } (t0 f32[@rank D, n]) -> (t1 f32[@lane D, n]) :
  t1 = Alloc(space=window, bytes=( ( D * n ) * 4 ), zero=false)
  %main = CurrentLane()
  FOR i in [0, D):
    SetLane(pool[( i % L )])
    After(%main)
  FOR i in [0, D):
    IF ( i == rank ):
      SetLane(pool[( i % L )])
      t1.i = Select(t1, axis=0, index=i)
      t0.0 = Select(t0, axis=0, index=0)
      t1.i = Copy(t0.0)
    ELSE:
      SetLane(pool[( i % L )])
      t1.i = Select(t1, axis=0, index=i)
      GroupBegin
        Recv #1 (dst=t1.i, peer=i, via=automatic)
        Send #2 (src=t0, peer=i, via=automatic)
      GroupEnd #3
      Wait(#3)
    SetLane(%main)
    After(pool[( i % L )])
} // %HostProgram
)");
}

std::string lowered(const char* name, const Parameters::Settings& settings) {
  const Compiled compiled = build(name, settings).compile();
  EXPECT_EQ(render(compiled.plan, compiled.diagnostics), "");
  return host::dump("it", *compiled.plan.extension.host);
}

/// Behind the first line, which says how it was made.
std::string statements(const std::string& dump) { return dump.substr(dump.find('\n')); }

TEST(Schedules, TheLayoutOfAnAllgatherBecomesWhatOneWritesByHand) {
  EXPECT_EQ(statements(lowered("allgather_layout", {})), statements(lowered("allgather_p2p", {})));
}

/// The seed's second program: a reshard in front, and then the same top level.
TEST(Schedules, TheLayoutOfAProductReadsLikeTheOriginal) {
  EXPECT_EQ(
      lowered("ag_matmul_layout", {{"order", "linear"}, {"style", "pool"}}),
      R"(%HostProgram it { ranks=D lanes=4 form=p2p order=linear style=pool } (A f32[@rank D, ( M / D ), K], B f32[K, N]) -> (C f32[@lane D, ( M / D ), N]) :
  C = Alloc(space=local, bytes=( ( ( D * ( M / D ) ) * N ) * 4 ), zero=false)
  %main = CurrentLane()
  A_gathered f32[@lane D, ( M / D ), K] = Alloc(space=window, bytes=( ( ( D * ( M / D ) ) * K ) * 4 ), zero=false)
  FOR i in [0, D):
    SetLane(pool[( i % L )])
    After(%main)
  FOR i in [0, D):
    IF ( i == rank ):
      SetLane(pool[( i % L )])
      A_gathered.i = Select(A_gathered, axis=0, index=i)
      A.0 = Select(A, axis=0, index=0)
      A_gathered.i = Copy(A.0)
    ELSE:
      SetLane(pool[( i % L )])
      A_gathered.i = Select(A_gathered, axis=0, index=i)
      GroupBegin
        Recv #1 (dst=A_gathered.i, peer=i, via=automatic)
        Send #2 (src=A, peer=i, via=automatic)
      GroupEnd #3
      Wait(#3)
    SetLane(pool[( i % L )])
    C.i = Select(C, axis=0, index=i)
    A_gathered.i = Select(A_gathered, axis=0, index=i)
    C.i = Call matmul(A_gathered.i, B)
    SetLane(%main)
    After(pool[( i % L )])
} // %HostProgram
)");
}

TEST(Schedules, OneRankWithItsFlags) {
  const Plan plan = build("ag_matmul_p2p").compile().plan;
  Diagnostics findings;
  const host::Concrete made = host::concretise(*plan.extension.host, {.ranks = 2}, findings);
  EXPECT_EQ(host::dump(plan.name, host::expand_movers(made), 1), R"(ag_matmul_p2p on rank 1 of 2
     0 comm     after main
     1 comp     after main
     2 comm     copy G[1:2, 0:480, 0:64] = A[0:1, 0:480, 0:64]
     3 comp     after comm
     4 comp     call matmul C[1:2, 0:480, 0:32] = G[1:2, 0:480, 0:64], B[0:64, 0:32]
     5 comm     post credit of G[0:1, 0:480, 0:64] at rank 0
     6 comm     take credit of G[1:2, 0:480, 0:64] from rank 0
     7 comm     put G[1:2, 0:480, 0:64] = A[0:1, 0:480, 0:64] at rank 0
     8 comm     post data of G[1:2, 0:480, 0:64] at rank 0
     9 comm     take data of G[0:1, 0:480, 0:64] from rank 0
    10 comp     after comm
    11 comp     call matmul C[0:1, 0:480, 0:32] = G[0:1, 0:480, 0:64], B[0:64, 0:32]
    12 main     after comm, comp
)");
}

TEST(Schedules, EveryOperationIsDocumented) {
  std::ifstream file(CHORALE_SOURCE_DIR "/docs/host-schedules.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const host::OpInfo& op : host::op_table()) {
    const std::string row = "| `" + std::string(op.name) + "` | " + std::string(op.summary) + " |\n";
    EXPECT_NE(text.find(row), std::string::npos) << row;
  }
}

/// A mistake is found at the line of its author.
TEST(Schedules, FindingsNameTheAuthorsLine) {
  Schedule schedule({.name = "wrong", .ranks = {2}});
  const Tensor in = schedule.input("x", DType::f32, {4}), out = schedule.output("y", DType::f32, {4});
  const uint32_t line = __LINE__ + 1;
  schedule.lane("a").copy(out, in);
  Program program = schedule;
  const Compiled compiled = program.compile();
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.diagnostics[0].line.line, line);
  EXPECT_EQ(compiled.diagnostics[0].line.file, "schedules_test.cpp");
}

}  // namespace
}  // namespace chorale::dsl
