// These tests check expressions of host schedules.

#include "chorale/schedule/expr.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace chorale::schedule {
namespace {

struct Case {
  ExprKind kind;
  int64_t left, right, expected;
};

TEST(Expr, DivisionRoundsDownAndTheRestIsNeverNegative) {
  const Case cases[] = {
      {ExprKind::add, 7, -2, 5},    {ExprKind::sub, 2, 7, -5},
      {ExprKind::mul, -3, 4, -12},  {ExprKind::div, 7, 2, 3},
      {ExprKind::div, -7, 2, -4},   {ExprKind::div, 7, -2, -4},
      {ExprKind::div, -7, -2, 3},   {ExprKind::div, -8, 2, -4},
      {ExprKind::mod, 7, 4, 3},     {ExprKind::mod, -1, 4, 3},
      {ExprKind::mod, -8, 4, 0},    {ExprKind::mod, 5, -4, 1},
      {ExprKind::mod, -5, -4, 3},   {ExprKind::min, -1, 2, -1},
      {ExprKind::max, -1, 2, 2},    {ExprKind::equal, 2, 2, 1},
      {ExprKind::unequal, 2, 2, 0}, {ExprKind::less, 2, 2, 0},
      {ExprKind::at_most, 2, 2, 1}, {ExprKind::both, 2, 0, 0},
      {ExprKind::either, 0, 5, 1},  {ExprKind::mod, std::numeric_limits<int64_t>::min(), -1, 0},
  };
  Exprs exprs;
  for (const Case& one : cases) {
    const Expr expr = exprs.binary(one.kind, exprs.constant(one.left), exprs.constant(one.right));
    const Evaluated value = evaluate(exprs, expr, {});
    EXPECT_TRUE(value) << text(exprs, expr) << ": " << value.problem;
    EXPECT_EQ(value.value, one.expected) << text(exprs, expr);
  }
}

TEST(Expr, WhatHasNoValueSaysWhy) {
  Exprs exprs;
  const Expr most = exprs.constant(std::numeric_limits<int64_t>::max());
  const Expr one = exprs.constant(1), zero = exprs.constant(0), i = exprs.symbol("i");
  EXPECT_EQ(evaluate(exprs, exprs.binary(ExprKind::add, most, one), {}).problem, "does not fit 64 bits");
  EXPECT_EQ(evaluate(exprs, exprs.binary(ExprKind::mul, most, most), {}).problem, "does not fit 64 bits");
  EXPECT_EQ(evaluate(exprs, exprs.binary(ExprKind::div, one, zero), {}).problem, "divides by zero");
  EXPECT_EQ(evaluate(exprs, exprs.binary(ExprKind::mod, one, zero), {}).problem, "divides by zero");
  EXPECT_EQ(evaluate(exprs, i, {}).problem, "has no value for 'i'");
  EXPECT_EQ(evaluate(exprs, i, {{"i", 5}}).value, 5);
}

TEST(Expr, ADecidedConditionDoesNotLookAtTheRest) {
  Exprs exprs;
  const Expr zero = exprs.constant(0), broken = exprs.binary(ExprKind::div, exprs.constant(1), zero);
  EXPECT_EQ(evaluate(exprs, exprs.binary(ExprKind::both, zero, broken), {}).value, 0);
  EXPECT_EQ(evaluate(exprs, exprs.binary(ExprKind::either, exprs.constant(1), broken), {}).value, 1);
}

TEST(Expr, EqualExpressionsAreOne) {
  Exprs exprs;
  const auto make = [&] { return exprs.binary(ExprKind::mod, exprs.symbol("rank"), exprs.constant(2)); };
  EXPECT_EQ(make(), make());
  EXPECT_EQ(text(exprs, make()), "( rank % 2 )");
}

}  // namespace
}  // namespace chorale::schedule
