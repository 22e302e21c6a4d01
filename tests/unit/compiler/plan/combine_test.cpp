// These tests compare the oracle of reductions with numbers that are computed by hand.

#include "chorale/combine.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace chorale::reference {
namespace {

TEST(Combine, NumbersAreCombined) {
  EXPECT_EQ(combine(ReduceOp::sum, 2.5, 4.0), 6.5);
  EXPECT_EQ(combine(ReduceOp::avg, 2.5, 4.0), 6.5);  // the caller divides
  EXPECT_EQ(combine(ReduceOp::prod, 2.5, 4.0), 10.0);
  EXPECT_EQ(combine(ReduceOp::min, 2.5, 4.0), 2.5);
  EXPECT_EQ(combine(ReduceOp::max, 2.5, 4.0), 4.0);
  EXPECT_EQ(combine(ReduceOp::min, int8_t{-3}, int8_t{2}), -3);
  EXPECT_EQ(combine(ReduceOp::max, uint64_t{1} << 63, uint64_t{1}), uint64_t{1} << 63);
}

TEST(Combine, IntegersWrap) {
  EXPECT_EQ(combine(ReduceOp::sum, INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(combine(ReduceOp::prod, INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(combine(ReduceOp::prod, uint8_t{200}, uint8_t{2}), 144);
}

TEST(Combine, SpecialValuesHaveTheirOrder) {
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    EXPECT_TRUE(std::isnan(combine(op, double(NAN), 1.0)));
    EXPECT_TRUE(std::isnan(combine(op, 1.0, double(NAN))));
    for (const double left : {0.0, -0.0})
      EXPECT_EQ(std::signbit(combine(op, left, -left)), op == ReduceOp::min);
  }
}

}  // namespace
}  // namespace chorale::reference
