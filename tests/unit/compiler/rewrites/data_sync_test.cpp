// These tests check that operations get the fences that they need.

#include "chorale/rewrites.hpp"
#include "tests/unit/compiler/helpers.hpp"

namespace chorale {
namespace {

using enum Opcode;
using enum ChannelType;

TEST(DataSync, OneFenceBetweenTwo) {
  Plan plan = two_ranks();
  add(block(plan), signal, {}, {}, {0}, memory).sync = SyncType::both;
  add(block(plan), wait, {}, {}, {0}, memory).sync = SyncType::both;
  add(block(plan), nop);
  add(block(plan), sem_release, {}, {}, {0}).sync = SyncType::before;
  add(block(plan), copy, {in(0)}, {out(0)});
  EXPECT_EQ(after(pass::data_sync, plan), "nop signal nop wait nop sem_release copy");
}

TEST(DataSync, D1KeepsTheFenceBeforeAPipeline) {
  Plan plan = two_ranks();
  add(block(plan), wait, {}, {}, {0}, memory).sync = SyncType::after;
  loop(plan, 2);
  add(block(plan), copy, {in(0)}, {out(0)});
  add(block(plan), nop);
  EXPECT_EQ(after(pass::fuse, plan), "wait pipeline(copy nop)");
  EXPECT_EQ(after(pass::data_sync, plan), "wait nop pipeline(copy nop)");
}

TEST(DataSync, BodiesOfPipelines) {
  Plan plan = two_ranks();
  loop(plan, 2);
  add(block(plan), wait, {}, {}, {0}, memory).sync = SyncType::both;
  add(block(plan), copy, {in(0)}, {out(0)}).sync = SyncType::after;
  add(block(plan), nop);
  EXPECT_EQ(after(pass::data_sync, plan), "pipeline(nop wait nop copy nop) nop");
}

TEST(DataSync, SharesNothingForMscclppIfNothingIsJoined) {
  Plan plan = two_ranks();
  for (const Opcode code : {signal, wait}) add(block(plan), code, {}, {}, {0}, memory).sync = SyncType::both;
  add(block(plan), nop);
  Plan theirs = plan;
  EXPECT_EQ(after(pass::data_sync, plan, {.fuse = false}), "nop signal nop wait nop");
  EXPECT_EQ(after(pass::data_sync, theirs, {.fuse = false, .target = Target::mscclpp}),
            "nop signal nop nop wait nop nop");
}

}  // namespace
}  // namespace chorale
