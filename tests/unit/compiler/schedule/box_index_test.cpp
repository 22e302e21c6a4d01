#include "compiler/schedule/checks/box_index.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "boxes.hpp"

namespace chorale::schedule {
namespace {

TEST(BoxIndex, FindsAllThatOverlap) {
  std::mt19937 random(1);
  const ConcreteTensor tensor = tensor_of({5, 7, 3});
  for (int round = 0; round < 50; ++round) {
    const auto any = [&] {
      Box box = box_of({}, {});
      for (const uint64_t extent : tensor.shape) {
        box.lo.push_back(random() % extent);
        box.extent.push_back(1 + random() % (extent - box.lo.back()));
      }
      return box;
    };
    std::vector<Box> boxes;
    BoxIndex index(tensor);
    for (size_t id = 0; id < size_t(round); ++id) {
      boxes.push_back(any());
      index.add(boxes.back(), id);
    }
    index.build();
    for (size_t least : {size_t{0}, boxes.size() / 2}) {
      const Box wanted = any();
      const std::vector<size_t> near = index.near(wanted, least);
      EXPECT_TRUE(std::is_sorted(near.begin(), near.end()));
      EXPECT_EQ(std::adjacent_find(near.begin(), near.end()), near.end());
      for (size_t id = 0; id < boxes.size(); ++id) {
        if (id < least || !wanted.overlaps(boxes[id])) continue;
        EXPECT_TRUE(std::binary_search(near.begin(), near.end(), id));
      }
      for (const size_t id : near) EXPECT_GE(id, least);
    }
  }
}

TEST(BoxIndex, SlicesOfOtherTurnsAreNotNear) {
  const uint64_t turns = 1000;
  BoxIndex index(tensor_of({turns, 4, 8}));
  index.add(box_of({0, 0, 0}, {turns, 4, 8}), turns);  // the application's
  for (uint64_t turn = 0; turn < turns; ++turn) index.add(box_of({turn, 1, 0}, {1, 2, 8}), turn);
  index.build();
  for (const uint64_t turn : {uint64_t{0}, uint64_t{417}, turns - 1})
    EXPECT_EQ(index.near(box_of({turn, 2, 3}, {1, 1, 5})), (std::vector<size_t>{turn, turns}));
  EXPECT_EQ(index.near(box_of({0, 0, 0}, {1, 1, 8})), std::vector<size_t>{turns});
}

}  // namespace
}  // namespace chorale::schedule
