// These test what a ProgressWatch is told.

#include "chorale/progress.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "compiler/plan/progress.hpp"

namespace chorale {
namespace {

TEST(Progress, OfPartsCountsWithinTheWhole) {
  std::vector<double> told;
  const ProgressWatch watch([&](double share) { told.push_back(share); });
  tell_progress(0.5);
  {
    const ProgressPart half(0.5, 1);
    tell_progress(0);
    {
      const ProgressPart quarter(0.25, 0.5);
      tell_progress(1);
    }
    tell_progress(1);
  }
  tell_progress(0.25);
  EXPECT_EQ(told, (std::vector<double>{0.5, 0.5, 0.75, 1, 0.25}));
}

TEST(Progress, IsToldToTheInnermostWatch) {
  std::vector<double> outer, inner;
  const ProgressWatch watch([&](double share) { outer.push_back(share); });
  const ProgressPart half(0, 0.5);
  {
    const ProgressWatch second([&](double share) { inner.push_back(share); });
    tell_progress(1);  // the inner watch sees the whole of its work
  }
  tell_progress(1);
  EXPECT_EQ(inner, std::vector<double>{1});
  EXPECT_EQ(outer, std::vector<double>{0.5});
}

TEST(Progress, NeedsNoWatch) { tell_progress(0.5); }

}  // namespace
}  // namespace chorale
