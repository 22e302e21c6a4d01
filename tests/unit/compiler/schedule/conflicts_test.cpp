#include "compiler/schedule/checks/conflicts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "boxes.hpp"

namespace chorale::schedule {
namespace {

/// Makes events of a few queues. Each event comes after everything that its queue, and the queues that it
/// waited for, know.
class History {
 public:
  /// Adds an event of a queue, which first waits for the last events of `others`. Its rank is the queue.
  Event add(uint32_t queue, const std::vector<uint32_t>& others = {}) {
    for (const uint32_t other : others)
      for (size_t k = 0; k < queues; ++k) known_[queue][k] = std::max(known_[queue][k], known_[other][k]);
    begins_[queue].push_back(known_[queue]);
    known_[queue][queue] = uint32_t(begins_[queue].size());
    return {queue, uint32_t(begins_[queue].size() - 1), 0};
  }
  bool before(const Event& first, const Event& second) const {
    return begins_[second.rank][second.step][first.rank] > first.step;
  }
  bool are_in_order(const std::vector<Access>& accesses) const {
    std::vector<const Access*> list;
    for (const Access& one : accesses) list.push_back(&one);
    return conflicts_are_in_order(tensor_of({4, 4}), list, [this](const Event& first, const Event& second) {
      ++asked;
      return before(first, second);
    });
  }

  static constexpr size_t queues = 4;
  mutable uint64_t asked = 0;

 private:
  std::array<std::array<uint32_t, queues>, queues> known_{};
  std::array<std::vector<std::array<uint32_t, queues>>, queues> begins_;
};

bool every_two_are_in_order(const History& history, const std::vector<Access>& all) {
  for (const Access& one : all) {
    for (const Access& other : all) {
      if (one.event == other.event || !(one.writes || other.writes) || !one.box->overlaps(*other.box))
        continue;
      if (!history.before(one.event, other.event) && !history.before(other.event, one.event)) return false;
    }
  }
  return true;
}

TEST(Conflicts, AreFoundAsByComparingEveryTwo) {
  std::mt19937 random(1);
  std::array<int, 2> seen{};
  for (int round = 0; round < 20000; ++round) {
    std::vector<Box> boxes;
    for (int count = 1 + int(random() % 4); count > 0; --count) {
      const uint64_t row = random() % 4, column = random() % 4;
      boxes.push_back(box_of({row, column}, {1 + random() % (4 - row), 1 + random() % (4 - column)}));
    }
    History history;
    std::vector<Access> accesses;
    const unsigned waits = 1 + random() % 3, reads = 1 + random() % 4;
    for (int count = int(random() % 14); count > 0; --count) {
      std::vector<uint32_t> others;
      for (uint32_t other = 0; other < History::queues; ++other)
        if (random() % 4 < waits) others.push_back(other);
      const Event event = history.add(random() % History::queues, others);
      for (int uses = 1 + int(random() % 2); uses > 0; --uses)
        accesses.push_back({event, 0, &boxes[random() % boxes.size()], random() % reads == 0, 0});
    }
    const bool expected = every_two_are_in_order(history, accesses);
    ASSERT_EQ(history.are_in_order(accesses), expected) << "round " << round;
    ++seen[expected];
  }
  EXPECT_GT(seen[0], 2000);
  EXPECT_GT(seen[1], 2000);
}

/// A slot is filled in one queue and read in another, in alternation.
TEST(Conflicts, OfASlotAreComparedWithTheLastTurnOnly) {
  const int turns = 1000;
  const Box slot = box_of({1, 0}, {1, 4});
  History history;
  std::vector<Access> accesses;
  for (int turn = 0; turn < turns; ++turn) {
    accesses.push_back({history.add(0, {1}), 0, &slot, true, 0});
    accesses.push_back({history.add(1, {0}), 0, &slot, false, 0});
  }
  EXPECT_TRUE(history.are_in_order(accesses));
  EXPECT_LT(history.asked, 4u * turns);
}

}  // namespace
}  // namespace chorale::schedule
