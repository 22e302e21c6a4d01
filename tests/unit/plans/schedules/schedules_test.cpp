// These tests check that the schedules of plans/schedules pass their checks, and survive a round trip.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "chorale/dsl.hpp"
#include "chorale/json.hpp"
#include "chorale/schedule/dump.hpp"
#include "chorale/schedule/lint.hpp"

namespace chorale::dsl {
namespace {

TEST(Schedules, PassTheirChecksAndSurviveARoundTrip) {
  for (const RegisteredProgram& one : programs()) {
    const Compiled compiled = build(one.name).compile();
    EXPECT_EQ(render(compiled.plan, compiled.diagnostics), "") << one.name;
    const schedule::Schedule& schedule = *compiled.plan.extension.schedule;
    EXPECT_EQ(render_warnings(compiled.plan, schedule::lint(schedule)), "") << one.name;
    const std::string text = write(compiled.plan);
    EXPECT_EQ(write(read(text)), text) << one.name;
  }
}

/// A product over an empty k is zero, and there may be nothing to move or compute.
TEST(Schedules, ExtentsMayBeZero) {
  const std::pair<const char*, const char*> cases[] = {{"ag_matmul_layout", "M"},
                                                       {"ag_matmul_layout", "K"},
                                                       {"ag_matmul_layout", "N"},
                                                       {"allgather_layout", "n"},
                                                       {"allgather_p2p", "n"}};
  for (const auto& [name, param] : cases) {
    const Compiled compiled = build(name).compile();
    EXPECT_EQ(render(compiled.plan, schedule::check(*compiled.plan.extension.schedule, {{param, 0}})), "")
        << name << " " << param;
  }
}

TEST(Schedules, TheOrderOfSlicesIsFree) {
  for (const char* order : {"linear", "rotated"}) {
    const Compiled compiled = build("ag_matmul_p2p", {{"order", order}}).compile();
    EXPECT_EQ(render(compiled.plan, compiled.diagnostics), "") << order;
  }
  EXPECT_THROW(build("ag_matmul_p2p", {{"order", "ring"}}), std::invalid_argument);
}

/// The dump has the top level of nvFuser's lowered program: allocate, current stream, for, for.
TEST(Schedules, TheDumpReadsLikeTheOriginal) {
  const Plan plan = build("allgather_p2p").compile().plan;
  EXPECT_EQ(
      schedule::dump(plan.name, *plan.extension.schedule),
      R"(%HostProgram allgather_p2p { ranks=D streams=4 } (t0 f32[@rank D, n]) -> (t1 f32[@stream D, n]) :
  t1 = Alloc(space=window, bytes=( ( D * n ) * 4 ), zero=false)
  %main = CurrentStream()
  FOR i in [0, D):
    SetStream(pool[( i % streams )])
    After(%main)
  FOR i in [0, D):
    IF ( i == rank ):
      SetStream(pool[( i % streams )])
      t1.i = Select(t1, axis=0, index=i)
      t0.0 = Select(t0, axis=0, index=0)
      t1.i = Copy(t0.0)
    ELSE:
      SetStream(pool[( i % streams )])
      t1.i = Select(t1, axis=0, index=i)
      GroupBegin
        Recv #1 (dst=t1.i, peer=i, via=automatic)
        Send #2 (src=t0, peer=i, via=automatic)
      GroupEnd #3
      Wait(#3)
    SetStream(%main)
    After(pool[( i % streams )])
} // %HostProgram
)");
}

std::string lowered(const char* name, const Parameters::Settings& settings) {
  const Compiled compiled = build(name, settings).compile();
  EXPECT_EQ(render(compiled.plan, compiled.diagnostics), "");
  return schedule::dump("it", *compiled.plan.extension.schedule);
}

/// Returns the dump after its first line, which says how it was made.
std::string statements(const std::string& dump) { return dump.substr(dump.find('\n')); }

TEST(Schedules, TheLayoutOfAnAllgatherBecomesWhatOneWritesByHand) {
  EXPECT_EQ(statements(lowered("allgather_layout", {})), statements(lowered("allgather_p2p", {})));
}

/// This is the seed's second program: a reshard first, and then the same top level.
TEST(Schedules, TheLayoutOfAProductReadsLikeTheOriginal) {
  EXPECT_EQ(
      lowered("ag_matmul_layout", {{"order", "linear"}, {"style", "pool"}}),
      R"(%HostProgram it { ranks=D streams=4 form=p2p order=linear style=pool } (A f32[@rank D, ( M / D ), K], B f32[K, N]) -> (C f32[@stream D, ( M / D ), N]) :
  C = Alloc(space=local, bytes=( ( ( D * ( M / D ) ) * N ) * 4 ), zero=false)
  %main = CurrentStream()
  A_gathered f32[@stream D, ( M / D ), K] = Alloc(space=window, bytes=( ( ( D * ( M / D ) ) * K ) * 4 ), zero=false)
  FOR i in [0, D):
    SetStream(pool[( i % streams )])
    After(%main)
  FOR i in [0, D):
    IF ( i == rank ):
      SetStream(pool[( i % streams )])
      A_gathered.i = Select(A_gathered, axis=0, index=i)
      A.0 = Select(A, axis=0, index=0)
      A_gathered.i = Copy(A.0)
    ELSE:
      SetStream(pool[( i % streams )])
      A_gathered.i = Select(A_gathered, axis=0, index=i)
      GroupBegin
        Recv #1 (dst=A_gathered.i, peer=i, via=automatic)
        Send #2 (src=A, peer=i, via=automatic)
      GroupEnd #3
      Wait(#3)
    SetStream(pool[( i % streams )])
    C.i = Select(C, axis=0, index=i)
    A_gathered.i = Select(A_gathered, axis=0, index=i)
    C.i = Call matmul(A_gathered.i, B)
    SetStream(%main)
    After(pool[( i % streams )])
} // %HostProgram
)");
}

TEST(Schedules, OneRankWithItsFlags) {
  const Plan plan = build("ag_matmul_p2p").compile().plan;
  Diagnostics findings;
  const schedule::Concrete made = schedule::concretise(*plan.extension.schedule, {.ranks = 2}, findings);
  EXPECT_EQ(schedule::dump(plan.name, schedule::expand_movers(made), 1), R"(ag_matmul_p2p on rank 1 of 2
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
  for (const schedule::OpInfo& op : schedule::op_table()) {
    const std::string row = "| `" + std::string(op.name) + "` | " + std::string(op.summary) + " |\n";
    EXPECT_NE(text.find(row), std::string::npos) << row;
  }
}

/// A mistake is reported at its author's line.
TEST(Schedules, FindingsNameTheAuthorsLine) {
  Schedule schedule({.name = "wrong", .ranks = {2}});
  const Tensor in = schedule.input("x", DType::f32, {4}), out = schedule.output("y", DType::f32, {4});
  const uint32_t line = __LINE__ + 1;
  schedule.stream("a").copy(out, in);
  Program program = schedule;
  const Compiled compiled = program.compile();
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.diagnostics[0].line.line, line);
  EXPECT_EQ(compiled.diagnostics[0].line.file, "schedules_test.cpp");
}

/// Declares two ranks, x [2, 4] of which each has a row, y [2, 4], and t [4].
struct Pair {
  Schedule schedule{{.name = "pair", .ranks = {2}}};
  Index rank = schedule.rank(), other = 1 - rank;
  Tensor x = schedule.input("x", DType::f32, {over_ranks(schedule.ranks()), 4});
  Tensor y = schedule.output("y", DType::f32, {schedule.ranks(), 4});
  Tensor t = schedule.temporary("t", DType::f32, {4});
  Stream main = schedule.main();
};

/// Returns "" if `text` is reported at this line of this file when the schedule is recorded; else all
/// findings.
std::string found_at(const Schedule& schedule, uint32_t line, const std::string& text) {
  const Program program = schedule;
  for (const Diagnostic& finding : program.diagnostics())
    if (finding.line == SourceLine{"schedules_test.cpp", line} &&
        finding.text.find(text) != std::string::npos)
      return "";
  return render(Plan{}, program.diagnostics()) + "but not line " + std::to_string(line) + ": " + text;
}

TEST(Schedules, AGroupHasTransfersAlone) {
  Pair of;
  uint32_t condition = 0, fill = 0, nested = 0;
  of.main.wait(of.main.group([&](Group& group) {
    condition = __LINE__ + 1;
    of.schedule.when(of.rank == 0, [&] { group.send(of.x, of.other); });
    fill = __LINE__ + 1;
    of.main.fill(of.t, 0);
    nested = __LINE__ + 1;
    of.main.group([&](Group& inner) { inner.recv(of.t, of.other); });
  }));
  EXPECT_EQ(
      found_at(of.schedule, condition, "a group has sends and receives alone, but in its body is a 'if'"),
      "");
  EXPECT_EQ(found_at(of.schedule, fill, "in its body is a 'fill'"), "");
  EXPECT_EQ(found_at(of.schedule, nested, "in its body is a 'group'"), "");
}

TEST(Schedules, ViewsKnowTheirLine) {
  Pair of;
  of.main.copy(of.y, of.x.select(3, 1));
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1, "axis 3 of 'x', which has 2 axes"), "");
  of.main.copy(of.y, of.x[0][0]);
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1, "axis 0 of 'x' is selected or sliced twice"), "");
  of.main.copy(of.y, of.x.slice(0, 0, 2).slice(0, 1, 1));
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1, "name its part in one step"), "");
}

TEST(Schedules, WhatIsOfAnotherScheduleIsNoticed) {
  Pair of, from;
  const Flag flag = from.schedule.flag("f");
  const Index mixed = of.rank + from.schedule.param("k", 3);
  of.main.fill(of.t, from.rank);
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1, "an index of another schedule, 'pair'"), "");
  of.main.fill(of.t, mixed);
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1, "an index made of parts of two schedules"), "");
  of.main.copy(of.t, from.x[0]);
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1, "a view of another schedule"), "");
  of.main.after({from.schedule.stream("a")});
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1, "a stream of another schedule"), "");
  of.main.post(flag, of.other);
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1, "a flag of another schedule"), "");
  of.main.wait(from.schedule.token());
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1, "a token of another schedule"), "");
}

TEST(Schedules, WordsThatWereMeant) {
  Pair of;
  of.main.wait(of.main.collective("all_gather", of.t, of.x[0]));
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1,
                     "there is no collective 'all_gather', expected one of allgather, allreduce, "
                     "reducescatter, broadcast, reduce, alltoall, did you mean 'allgather'?"),
            "");
  Schedule nobody({.name = "nobody"});
  EXPECT_EQ(found_at(nobody, __LINE__ - 1,
                     "the schedule does not say for how many ranks it is: .ranks = {2, 4, 8}"),
            "");
}

TEST(Schedules, NamesAreThoseThatAPlanFileCanHave) {
  Pair of;
  of.schedule.stream("comm stream");
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1, "a stream 'comm stream', expected a name of letters"), "");
  of.schedule.stream("main");
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1, "a stream 'main': take main()"), "");
  of.schedule.param("block-size", 1);
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1, "a parameter 'block-size'"), "");
  of.schedule.param("ranks", 1);
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1, "a parameter 'ranks', but"), "");
  of.schedule.flag("f"), of.schedule.flag("f");
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1, "there is a flag 'f' already"), "");
  of.schedule.loop("2i", 0, 1, [](Index) {});
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1, "a variable '2i'"), "");
  Index deep = of.rank, wide = of.rank;
  for (int k = 0; k < 20000; ++k) deep = deep + k;
  for (int k = 0; k < 30; ++k) wide = wide * wide;
  of.main.fill(of.t, deep);
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1, "an expression of 20000 operators"), "");
  of.main.fill(of.t, wide);
  EXPECT_EQ(found_at(of.schedule, __LINE__ - 1, "an expression of 1073741823 operators, nested 30 deep"), "");
}

TEST(Schedules, WhatIsAsDeepAsItMayBeCanBeReadAgain) {
  Schedule schedule({.name = "deep", .ranks = {1, 2}});
  const Tensor x = schedule.input("x", DType::f32, {4}), y = schedule.output("y", DType::f32, {4});
  schedule.main().copy(y, x);
  Index first = 0;
  for (int k = 0; k < 34; ++k) first = first + (schedule.rank() - schedule.rank()) * k;
  const std::function<void(int)> nest = [&](int loops) {
    if (loops == 0) return schedule.main().fill(y.slice(0, first, 1), 3);
    schedule.loop("i" + std::to_string(loops), 0, 1, [&](Index) { nest(loops - 1); });
  };
  nest(8);
  const Compiled compiled = Program(schedule).compile();
  EXPECT_EQ(render(compiled.plan, compiled.diagnostics), "");
  const std::string text = write(compiled.plan);
  EXPECT_EQ(write(read(text)), text);
}

/// Each turn has its own token, for which another loop waits.
TEST(Schedules, TokensMayHaveAnIndex) {
  Pair of;
  const Stream comm = of.schedule.stream("comm");
  of.main.fork({comm});
  const Token arrived = of.schedule.token(), gathered = of.schedule.token();
  of.schedule.loop("i", 0, 2, [&](Index i) {
    comm.group(arrived[i], [&](Group& group) {
      group.recv(of.y[of.other].slice(1, i * 2, 2), of.other);
      group.send(of.x[0].slice(1, i * 2, 2), of.other);
    });
  });
  of.main.copy(of.y[of.rank], of.x[0]);
  of.schedule.loop("j", 0, 2, [&](Index j) { of.main.wait(arrived[j]); });
  of.schedule.loop("k", 0, 1,
                   [&](Index k) { comm.collective("broadcast", of.t, of.x[0], {.token = gathered[k]}); });
  of.schedule.loop("l", 0, 1, [&](Index l) { comm.wait(gathered[l]); });
  of.main.join({comm});
  const Compiled compiled = Program(of.schedule).compile();
  EXPECT_EQ(render(compiled.plan, compiled.diagnostics), "");
}

/// Extents are numbers of any integer type. One that does not fit in 32 bits is not truncated.
TEST(Schedules, ExtentsAreWhole) {
  Schedule schedule({.name = "wide", .ranks = {1}});
  const int64_t rows = (int64_t{1} << 32) + 8;
  const uint32_t columns = 1;
  const Tensor x = schedule.input("x", DType::u8, {rows, columns}),
               y = schedule.output("y", DType::u8, {rows, columns});
  schedule.main().copy(y, x);
  const Compiled compiled = Program(schedule).compile();
  EXPECT_EQ(render(compiled.plan, compiled.diagnostics), "");
  const schedule::Schedule& made = *compiled.plan.extension.schedule;
  EXPECT_EQ(text(made.exprs, made.tensors[0].axes[0].extent), "4294967304");
}

}  // namespace
}  // namespace chorale::dsl
