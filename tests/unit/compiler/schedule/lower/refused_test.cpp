// These tests have layouts that cannot be lowered, and check the messages to their author.

#include <gtest/gtest.h>

#include <regex>

#include "chorale/dsl.hpp"

namespace chorale::test {
namespace {

using namespace chorale::dsl;

constexpr DType f32 = DType::f32;

/// Returns the findings, for all lines of this file.
std::string findings(const std::function<void(Schedule&)>& write, Lowering lowering = {}, int64_t pool = 0) {
  Schedule schedule({.name = "it", .ranks = {2, 4}, .pool = pool, .lowering = lowering});
  write(schedule);
  const Program program = schedule;
  const Compiled compiled = program.compile();
  return std::regex_replace(render(compiled.plan, compiled.diagnostics),
                            std::regex("refused_test.cpp:[1-9][0-9]*"), "here");
}

#define SAYS(expected, ...) EXPECT_EQ(findings(__VA_ARGS__), expected)

TEST(Refused, All) {
  const auto rows = [](Schedule& s) { return s.input("x", f32, {over_ranks(s.ranks()), 3}); };
  SAYS(
      "here: error: axes 0 and 1 of 'y' are both over streams [tags]\n"
      "help: leave one of them over streams\n"
      "1 error\n",
      [&](Schedule& s) {
        s.set(s.output("y", f32, {over_streams(s.ranks()), over_streams(3)}), rows(s));
      });
  SAYS(
      "here: error: 'set' of x[ranks, 3] to y[ranks]: the number of axes does not fit [tags]\n"
      "help: operands have as many axes as the result, 1\n"
      "1 error\n",
      [&](Schedule& s) { s.set(s.output("y", f32, {over_streams(s.ranks())}), rows(s)); });
  SAYS(
      "here: error: 'set' of x[ranks, 3] to t[ranks]: the number of axes does not fit [tags]\n"
      "help: operands have as many axes as the result, 1\n"
      "1 error\n",  // and no finding that nothing computes what is read next
      [&](Schedule& s) {
        const Tensor t = s.temporary("t", f32, {over_streams(s.ranks())});
        s.set(t, rows(s));
        s.set(s.output("y", f32, {over_streams(s.ranks())}), t);
      });
  SAYS(
      "here: error: 'sum' of x[ranks, 3] to y[3]: the operand has no such axis to sum over [tags]\n"
      "help: axes are counted from 0 to 1\n"
      "1 error\n",
      [&](Schedule& s) { s.sum(s.output("y", f32, {3}), rows(s), 2); });
  SAYS(
      "here: error: 'sum' of x[ranks, 3] to y[3, 1]: the result has one axis less than the operand [tags]\n"
      "help: leave out the axis that is summed over\n"
      "1 error\n",
      [&](Schedule& s) {
        s.sum(s.output("y", f32, {3, 1}), rows(s), 0);
      });
  SAYS(
      "here: error: 'matmul' of x[ranks, 3] to y[3]: matrices have two axes or more [tags]\n"
      "help: put an axis of extent 1 in front\n"
      "1 error\n",
      [&](Schedule& s) {
        const Tensor x = rows(s);
        s.matmul(s.output("y", f32, {3}), x, x);
      });
  SAYS(
      "here: error: 'matmul' of x[ranks, 3] to y[2, 2, ranks, 3]: the number of axes does not fit [tags]\n"
      "help: operands have the 4 axes of the result; they may lack its first 2 if they are the same for all "
      "of them\n"
      "1 error\n",
      [&](Schedule& s) {
        const Tensor x = rows(s);
        s.matmul(s.output("y", f32, {2, 2, s.ranks(), 3}), x, x);
      });
  SAYS(
      "here: error: axis 0 of 'x' is ranks over ranks, but axis 0 of 'y' is 8 over streams [tags]\n"
      "help: give both the same extent; where only a part of an axis is of the ranks, split it in two: "
      "[ranks, extent / ranks]\n"
      "1 error\n",
      [&](Schedule& s) {
        s.set(s.output("y", f32, {over_streams(8), 3}), rows(s));
      });
  SAYS(
      "here: error: 'y' is read before anything computes it [tags]\n"
      "help: compute it first, or make it an input\n"
      "1 error\n",
      [&](Schedule& s) {
        const Tensor y = s.temporary("y", f32, {over_streams(s.ranks()), 3});
        s.set(s.output("z", f32, {over_streams(s.ranks()), 3}), y);
      });
  SAYS(
      "here: error: 'y' is computed twice [tags]\n"
      "here: note: here, too\n"
      "help: compute a temporary and add the two\n"
      "1 error\n",
      [&](Schedule& s) {
        const Tensor y = s.output("y", f32, {over_streams(s.ranks()), 3}), x = rows(s);
        s.set(y, x);
        s.add(y, y, y);
      });
  SAYS(
      "here: error: 'x' is an input, and cannot be computed [tags]\n"
      "help: compute an output or a temporary\n"
      "1 error\n",
      [&](Schedule& s) {
        s.set(rows(s), s.input("y", f32, {s.ranks(), 3}));
      });
  SAYS(
      "here: error: nothing computes the result 'z' [tags]\n"
      "help: compute it, or leave it out\n"
      "1 error\n",
      [&](Schedule& s) {
        s.set(s.output("y", f32, {over_streams(s.ranks()), 3}), rows(s));
        s.output("z", f32, {3});
      });
  SAYS(
      "here: error: 'copy' belongs to the explicit form, but the schedule also has a layout [tags]\n"
      "help: write the schedule in one form: the compiler makes the streams of a layout\n"
      "1 error\n",
      [&](Schedule& s) {
        const Tensor x = rows(s), y = s.output("y", f32, {over_streams(s.ranks()), 3});
        s.set(y, x);
        s.main().copy(y[0], x[0]);
      });
  SAYS(
      "here: error: 'set' works on whole tensors and cannot be in a loop or condition [dsl]\n"
      "here: error: 'for' belongs to the explicit form, but the schedule also has a layout [tags]\n"
      "help: write the schedule in one form: the compiler makes the streams of a layout\n"
      "2 errors\n",
      [&](Schedule& s) {
        const Tensor x = rows(s), y = s.output("y", f32, {over_streams(s.ranks()), 3});
        s.loop("i", 0, 2, [&](Index) { s.set(y, x); });
      });
  SAYS(
      "here: error: 'matmul' sums over axis 1 of 'a', which is over ranks [tags]\n"
      "help: give the ranks an axis of their own, [ranks, extent / ranks], in operands and result, and sum "
      "the result over it\n"
      "1 error\n",
      [&](Schedule& s) {
        const Tensor a = s.input("a", f32, {4, over_ranks(s.ranks())}),
                     b = s.input("b", f32, {over_ranks(s.ranks()), 3});
        s.matmul(s.output("c", f32, {over_streams(4), 3}), a, b);
      });
  SAYS(
      "here: error: axis 1 of 'y' is gathered from the ranks after axis 0, which is whole [tags]\n"
      "help: put axis 1 in front, or spread it over streams\n"
      "1 error\n",
      [&](Schedule& s) {
        s.set(s.output("y", f32, {2, s.ranks(), 3}), s.input("x", f32, {2, over_ranks(s.ranks()), 3}));
      });
  SAYS(
      "here: error: 'y' is over ranks along axis 1 and over streams along axis 2, but 'x' is over ranks "
      "along axis 0 [tags]\n"
      "help: spread axis 0 of 'y' over streams: each turn brings one slice of it\n"
      "1 error\n",
      [&](Schedule& s) {
        s.set(s.output("y", f32, {s.ranks(), over_ranks(s.ranks()), over_streams(3)}),
              s.input("x", f32, {over_ranks(s.ranks()), s.ranks(), 3}));
      });
  SAYS(
      "here: error: axis 2 of 'y' is scattered over the ranks after axis 1, which is whole [tags]\n"
      "help: put axis 2 in front\n"
      "1 error\n",
      [&](Schedule& s) {
        s.sum(s.output("y", f32, {over_streams(5), 3, over_ranks(s.ranks())}),
              s.input("x", f32, {5, over_ranks(s.ranks()), 3, s.ranks()}), 1);
      });
  const auto gather = [&](Schedule& s) { s.set(s.output("y", f32, {over_streams(s.ranks()), 3}), rows(s)); };
  SAYS(
      "here: error: in a turn all ranks take part in one broadcast, so their slices cannot be in the order "
      "rotated [tags]\n"
      "help: use the order linear, or the form p2p\n"
      "1 error\n",
      gather, {.order = Order::rotated, .form = Form::broadcast});
  SAYS(
      "here: error: the stream style chained needs pool streams, but the schedule has none [tags]\n"
      "help: give it some, as in .pool = 4, or use the style split\n"
      "1 error\n",
      gather, {.style = StreamStyle::chained});
  SAYS(
      "here: error: the stream style ahead needs transfers between pairs, but here all ranks take part in "
      "one broadcast [tags]\n"
      "help: use the style split, or a form and axes by which slices travel between pairs\n"
      "1 error\n",
      gather, {.form = Form::broadcast, .style = StreamStyle::ahead});
  SAYS(
      "here: error: around a ring each turn sends what the turn before it has received, so no credit can be "
      "posted ahead [tags]\n"
      "help: use the order rotated or linear, or the style split\n"
      "1 error\n",
      gather, {.order = Order::ring, .style = StreamStyle::ahead});
  SAYS(
      "here: error: the stream style ahead needs copy engines, but the transfers are via plan [tags]\n"
      "help: use via ce_put or ce_get, or the style split\n"
      "1 error\n",
      gather, {.style = StreamStyle::ahead, .via = schedule::Mover::plan});
  const auto scatter = [&](Schedule& s) {
    s.sum(s.output("y", f32, {over_ranks(s.ranks()), 3}),
          s.input("x", f32, {over_ranks(s.ranks()), s.ranks(), 3}), 0);
  };
  SAYS(
      "here: error: around a ring slices are passed on, but here each slice goes to only one rank [tags]\n"
      "help: use the order rotated or linear\n"
      "1 error\n",
      [&](Schedule& s) {
        s.set(s.output("y", f32, {over_streams(s.ranks()), over_ranks(s.ranks()), 3}),
              s.input("x", f32, {over_ranks(s.ranks()), s.ranks(), 3}));
      },
      {.order = Order::ring});
  SAYS("", scatter, {.order = Order::ring});
  SAYS(
      "here: error: in a turn all ranks take part in one reduce, so their slices cannot be in the order ring "
      "[tags]\n"
      "help: use the order linear, or the form p2p\n"
      "1 error\n",
      scatter, {.order = Order::ring, .form = Form::reduce});
}

/// A finding is at the author's line even if it is made only after slices and streams exist.
TEST(Refused, AtTheAuthorsLine) {
  Schedule schedule({.name = "it", .ranks = {2}});
  const Tensor in = schedule.input("x", f32, {over_ranks(schedule.ranks()), 4});
  const Tensor out = schedule.output("y", DType::f16, {over_streams(schedule.ranks()), 4});
  const uint32_t line = __LINE__ + 1;
  schedule.set(out, in);
  const Program program = schedule;
  const Compiled compiled = program.compile();
  ASSERT_EQ(compiled.diagnostics.size(), 1u);
  EXPECT_EQ(compiled.diagnostics[0].check, "matching");
  EXPECT_EQ(compiled.diagnostics[0].line.line, line);
}

}  // namespace
}  // namespace chorale::test
