// These tests have schedules that run, but do not give what their layout says.

#include <gtest/gtest.h>

#include <stdexcept>

#include "chorale/dsl.hpp"
#include "chorale/schedule/concrete.hpp"

namespace chorale::test {
namespace {

using namespace chorale::dsl;

/// Returns C[streams] of A[ranks] and B, lowered for two ranks.
schedule::Schedule lowered() {
  Schedule schedule({.name = "it", .ranks = {2}});
  const Index ranks = schedule.ranks();
  const Tensor a = schedule.input("A", DType::f32, {over_ranks(ranks), 2, 4}),
               b = schedule.input("B", DType::f32, {4, 3});
  schedule.matmul(schedule.output("C", DType::f32, {over_streams(ranks), 2, 3}), a, b);
  const Program program = schedule;
  return *program.recorded().extension.schedule;
}

std::string found(const schedule::Schedule& schedule) {
  const Diagnostics findings = schedule::check(schedule);
  return findings.empty() ? "" : findings[0].text + " [" + findings[0].check + "]";
}

/// Returns the loop. A turn has the rank's own slice or an exchange, an `after`, and the product.
schedule::Op& turn(schedule::Schedule& schedule) {
  for (schedule::Op& op : schedule.body)
    if (op.kind == schedule::OpKind::for_) return op;
  throw std::logic_error("there is no loop");
}

TEST(Results, OfTheCompilerAreThoseOfTheLayout) { EXPECT_EQ(found(lowered()), ""); }

TEST(Results, OfAnotherSlice) {
  schedule::Schedule schedule = lowered();
  schedule::Op& call = turn(schedule).body.back();
  ASSERT_EQ(call.name, "matmul");
  call.reads[0].selects[0].lo = schedule.exprs.symbol("rank");  // which exists from the first turn on
  EXPECT_EQ(found(schedule),
            "C[1:2, 0:2, 0:3] of rank 0 is not the matmul of the layout: A[0:1, 0:2, 0:4] of rank 1 is "
            "missing from it [result]");
}

TEST(Results, WithAnAddendTwice) {
  Schedule schedule({.name = "it", .ranks = {2}});
  const Tensor a = schedule.input("a", DType::f32, {4}), b = schedule.input("b", DType::f32, {4});
  schedule.add(schedule.output("c", DType::f32, {4}), a, b);
  const Program program = schedule;
  schedule::Schedule twice = *program.recorded().extension.schedule;
  twice.body.back().reads[1] = twice.body.back().reads[0];
  EXPECT_EQ(found(twice),
            "c[0:4] of rank 0 is not the add of the layout: b[0:4] is missing from it [result]");
}

}  // namespace
}  // namespace chorale::test
