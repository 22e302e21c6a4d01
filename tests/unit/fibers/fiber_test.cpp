/// \file
/// Tests fibers alone.

#include "../../../executor/fibers/fiber.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "../scarce_memory.hpp"

namespace chorale::test {
namespace {

constexpr size_t stack_bytes = 128 << 10;

struct Counting : fibers::Fiber {
  explicit Counting(int& count) : Fiber(stack_bytes), count(count) {}
  void run() override {
    for (int turn = 0; turn < 3; ++turn) {
      ++count;
      suspend();
    }
  }
  int& count;
};

void run_many(int fibers) {
  for (int at = 0; at < fibers; ++at) {
    int count = 0;
    Counting fiber(count);
    while (!fiber.resume()) {
    }
    ASSERT_EQ(count, 3);
  }
}

// The thread sanitizer keeps some of a fiber's data after the fiber has ended.
TEST(Fiber, LeavesNothingBehind) {
  run_many(100);
  const long before = address_space();
  ASSERT_GT(before, 0);
  run_many(2000);
  EXPECT_LT(address_space() - before, 8 << 10);
}

TEST(Fiber, DroppedHalfwayLeavesItsStackToNobody) {
  int dropped = 0;
  {
    Counting fiber(dropped);
    EXPECT_FALSE(fiber.resume());
  }
  run_many(2);
  EXPECT_EQ(dropped, 1);
}

TEST(Fiber, StacksAreApart) {
  std::vector<int> counts(100);
  std::vector<std::unique_ptr<Counting>> fibers;
  for (int& count : counts) fibers.push_back(std::make_unique<Counting>(count));
  for (int turn = 0; turn < 3; ++turn) {
    for (const auto& fiber : fibers) EXPECT_FALSE(fiber->resume());
    EXPECT_EQ(counts, std::vector<int>(100, turn + 1));
  }
  for (const auto& fiber : fibers) EXPECT_TRUE(fiber->resume());
}

}  // namespace
}  // namespace chorale::test
