/// \file
/// Tests which bindings an executor keeps, and what ranks agree on before they make one.

#include "executor/run/bindings.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "executor/binding/agreement.hpp"

namespace chorale::test {
namespace {

struct Counted final : Binding {
  Counted(uint64_t bytes, int& alive, bool in_graph = false)
      : Binding({.bytes = bytes}), alive(alive), in_graph(in_graph) {
    ++alive;
  }
  ~Counted() override { --alive; }
  bool held() const override { return in_graph; }
  void prepare(const Arguments&, void*) override {}
  void run(const Plan&, void*) override {}

  int& alive;
  bool in_graph;
};

class BindingsTest : public testing::Test {
 protected:
  Binding* add(Bindings& to, uint64_t bytes, bool in_graph = false) {
    return to.add(std::make_unique<Counted>(bytes, alive_, in_graph));
  }
  static Binding* find(Bindings& in, uint64_t bytes) { return in.find({.bytes = bytes}, {}); }

  int alive_ = 0;
};

TEST_F(BindingsTest, AreFoundByTheirCall) {
  Bindings bindings(0);
  Binding* const four = add(bindings, 4);
  Binding* const eight = add(bindings, 8);
  EXPECT_EQ(find(bindings, 4), four);
  EXPECT_EQ(find(bindings, 8), eight);
  EXPECT_EQ(find(bindings, 8), eight);
  EXPECT_EQ(find(bindings, 16), nullptr);
  EXPECT_EQ(bindings.surplus(), 0u);
}

TEST_F(BindingsTest, GoInTheOrderOfTheirLastUse) {
  Bindings bindings(3);
  for (const uint64_t bytes : {4, 8, 16}) {
    EXPECT_EQ(bindings.surplus(), 0u);
    add(bindings, bytes);
  }
  EXPECT_EQ(bindings.surplus(), 1u);
  find(bindings, 4);
  find(bindings, 16);
  find(bindings, 4);
  EXPECT_EQ(bindings.evictable(true), (std::vector<uint64_t>{2, 3, 1}));
  bindings.evict(std::vector<uint64_t>{2});
  EXPECT_EQ(alive_, 2);
  EXPECT_EQ(find(bindings, 8), nullptr);
  EXPECT_NE(find(bindings, 16), nullptr);
  EXPECT_EQ(bindings.surplus(), 0u);
}

TEST_F(BindingsTest, StayWhileAGraphHoldsThem) {
  Bindings bindings(1);
  add(bindings, 4, true);
  EXPECT_TRUE(bindings.evictable(true).empty());
  add(bindings, 8);
  EXPECT_EQ(bindings.evictable(true), std::vector<uint64_t>{2});
  EXPECT_EQ(bindings.surplus(), 2u);
}

TEST_F(BindingsTest, RetireAtAResetAndGoWhenNoGraphHoldsThem) {
  Bindings bindings(2);
  add(bindings, 4, true);
  add(bindings, 8);
  EXPECT_TRUE(bindings.evictable(false).empty());
  bindings.retire();
  EXPECT_EQ(find(bindings, 4), nullptr);
  EXPECT_EQ(find(bindings, 8), nullptr);
  EXPECT_EQ(bindings.surplus(), 0u);
  EXPECT_EQ(bindings.evictable(false), std::vector<uint64_t>{2});
  Binding* const later = add(bindings, 8);
  EXPECT_EQ(find(bindings, 8), later);
  EXPECT_EQ(bindings.evictable(true), (std::vector<uint64_t>{2, 3}));
  bindings.evict(std::vector<uint64_t>{2, 3});  // there is memory for the last one
  EXPECT_EQ(alive_, 2);
  EXPECT_EQ(find(bindings, 8), later);
}

TEST_F(BindingsTest, NumbersAreNotGivenTwice) {
  Bindings bindings(1);
  add(bindings, 4);
  bindings.evict(std::vector<uint64_t>{1});
  add(bindings, 8);
  EXPECT_EQ(bindings.evictable(true), std::vector<uint64_t>{2});
  bindings.retire();
  bindings.evict(std::vector<uint64_t>{2});
  EXPECT_EQ(alive_, 0);
  add(bindings, 8);
  EXPECT_EQ(bindings.evictable(true), std::vector<uint64_t>{3});
}

/// Three ranks agree on the bindings that none of them needs any more.
TEST(Agreement, IsOnWhatAllRanksCanDoWithout) {
  const std::vector<uint64_t> lists[] = {{5, 2, 3, 1}, {1, 2, 3}, {3, 5, 2}};
  std::vector<uint64_t> agreed[3];
  Plan plan;
  run_local(3, [&](World& world) {
    LaunchCount launches(world);
    agreed[world.rank()] = agree_on_binding(world, plan, {}, launches, lists[world.rank()]);
  });
  for (const auto& one : agreed) EXPECT_EQ(one, (std::vector<uint64_t>{2, 3}));
}

std::string mismatch_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const RunError& error) {
    return error.reason == RunError::Reason::mismatch || error.reason == RunError::Reason::deadlock
               ? error.what()
               : "";
  }
  return "";
}

TEST(Agreement, IsNotReachedByRanksThatHaveLaunchedOtherCalls) {
  std::string wrong[2];
  Plan plan;
  run_local(2, [&](World& world) {
    LaunchCount launches(world);
    agree_on_binding(world, plan, {}, launches, {});
    launches.add();
    agree_on_binding(world, plan, {}, launches, {});
    world.barrier();
    // Both ranks have these bindings, one of them a launch later than the other.
    wrong[world.rank()] = mismatch_of([&] {
      if (world.rank() == 1) launches.add();
      try {
        agree_on_binding(world, plan, {}, launches, {});
      } catch (const RunError& error) {
        if (error.reason == RunError::Reason::deadlock) world.reset();
        throw;
      }
    });
  });
  for (const std::string& one : wrong) EXPECT_NE(one, "");
}

TEST(Agreement, IsNotWaitedForWhereARankLaunches) {
  std::string wrong[3];
  Plan plan;
  run_local(3,
            [&](World& world) {
              LaunchCount launches(world);
              agree_on_binding(world, plan, {}, launches, {});
              launches.add();
              world.barrier();
              wrong[world.rank()] = mismatch_of([&] {
                if (world.rank() != 1) agree_on_binding(world, plan, {}, launches, {});
                launches.add();
                // The launch waits for the others. A barrier instead would collide with ranks that are about
                // to agree.
                for (;; std::this_thread::yield()) world.check();
              });
            },
            {.timeout = std::chrono::hours(1)});
  for (const std::string& one : wrong) {
    EXPECT_NE(one.find("rank 1 has launched call 2 of this executor"), one.npos) << one;
  }
}

/// The executor does not see replays of a graph.
TEST(Agreement, DoesNotCountWhatGraphsLaunch) {
  Plan plan;
  run_local(2, [&](World& world) {
    LaunchCount launches(world);
    agree_on_binding(world, plan, {}, launches, {});
    if (world.rank() == 0) {
      launches.capture();
    } else {
      for (int replay = 0; replay < 3; ++replay) launches.add();
    }
    EXPECT_NO_THROW(agree_on_binding(world, plan, {}, launches, {}));
  });
}

TEST(Agreement, BeginsAnewAfterAReset) {
  Plan plan;
  run_local(2, [&](World& world) {
    LaunchCount launches(world);
    agree_on_binding(world, plan, {}, launches, {});
    if (world.rank() == 0) launches.add();
    world.barrier();
    world.reset();
    launches.restart();
    EXPECT_NO_THROW(agree_on_binding(world, plan, {}, launches, {}));
  });
}

TEST(Agreement, TellsExecutorsApart) {
  Plan plan;
  run_local(2, [&](World& world) {
    LaunchCount one(world), other(world);
    agree_on_binding(world, plan, {}, one, {});
    agree_on_binding(world, plan, {}, other, {});
    if (world.rank() == 0) other.add();
    world.barrier();
    EXPECT_NO_THROW(agree_on_binding(world, plan, {}, one, {}));
  });
}

}  // namespace
}  // namespace chorale::test
