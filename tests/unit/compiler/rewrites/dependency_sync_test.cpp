// These tests check which operations of a block need a fence between them. D3 to D9 are faults of MSCCL++'s
// compiler that the rewrite must not have.

#include "chorale/rewrites.hpp"
#include "tests/unit/compiler/helpers.hpp"

namespace chorale {
namespace {

using enum Opcode;
using enum ChannelType;
const CompileOptions plain{};

TEST(DependencySync, ReadsAndWrites) {
  Plan plan = two_ranks();
  add(block(plan), copy, {in(0)}, {out(0)});
  add(block(plan), copy, {in(0)}, {out(1)});  // reads only: no fence
  add(block(plan), copy, {out(1)}, {scratch(0)});
  add(block(plan), copy, {in(1)}, {scratch(0)});
  EXPECT_EQ(after(pass::dependency_sync, plan), "copy copy nop copy nop copy");
  Plan off = two_ranks();
  add(block(off), copy, {in(0)}, {out(0)});
  add(block(off), copy, {out(0)}, {out(1)});
  EXPECT_EQ(after(pass::dependency_sync, off, {.auto_sync = false}), "copy copy");
}

TEST(DependencySync, D3RemembersWhatTheOperationBehindAFenceTouched) {
  Plan plan = two_ranks();
  add(block(plan), copy, {scratch(0)}, {out(0)});
  add(block(plan), copy, {in(0)}, {scratch(0)});
  add(block(plan), copy, {out(4)}, {in(0)});
  EXPECT_EQ(after(pass::dependency_sync, plan), "copy nop copy nop copy");
}

TEST(DependencySync, D4AnOperationDoesNotHideItsPredecessors) {
  Plan plan = two_ranks();
  add(block(plan), copy, {in(0, 2)}, {out(0, 2)});
  add(block(plan), Opcode::reduce, {in(1), in(3)}, {in(1)});
  EXPECT_EQ(after(pass::dependency_sync, plan), "copy nop re");
}

TEST(DependencySync, D8PacketReductions) {
  Plan plan = two_ranks();
  add(block(plan), copy, {in(0)}, {out(0)});
  add(block(plan), reduce_packets, {out(0), scratch(0)}, {out(1)});
  add(block(plan), reduce_copy_packets, {in(0), scratch(1)}, {out(2), scratch(2)});
  add(block(plan), read_put_packets, {scratch(2)}, {at(2, 0)}, {}, memory);
  EXPECT_EQ(after(pass::dependency_sync, plan), "copy nop repkt recpkt rppkt");
}

TEST(DependencySync, PacketsAreWaitedForByTheirReaders) {
  Plan plan = two_ranks();
  add(block(plan), copy_packets, {in(0, 2)}, {scratch(0, 2)});
  add(block(plan), unpack_packets, {scratch(0)}, {out(0)});
  add(block(plan), copy_packets, {in(2)},
      {scratch(0)});  // overwrites data that other threads may still have to read
  add(block(plan), unpack_packets, {scratch(1)}, {out(1)});
  add(block(plan), unpack_packets, {scratch(0)}, {out(2)});  // could take the first packet for the second one
  EXPECT_EQ(after(pass::dependency_sync, plan), "cpkt upkt nop cpkt upkt nop upkt");
}

TEST(DependencySync, D9SwitchOperations) {
  Plan plan = two_ranks();
  add(block(plan), copy, {in(0)}, {scratch(0)});
  add(block(plan), switch_broadcast, {scratch(0)}, {at(0, 0)}, {}, switched);
  add(block(plan), copy, {out(0)}, {scratch(3)});
  EXPECT_EQ(after(pass::dependency_sync, plan), "copy nop gstore nop copy");
}

TEST(DependencySync, InPlaceIsOneMemory) {
  const auto with = [](const char* collective, uint64_t input, uint64_t output) {
    Plan plan = two_ranks();
    plan.collective = collective;
    plan.inplace = true;
    for (Gpu& gpu : plan.gpus) gpu.chunks[0] = input, gpu.chunks[1] = output;
    return plan;
  };
  Plan reduced = with("allreduce", 8, 8);
  add(block(reduced), copy, {in(0)}, {scratch(0)});
  add(block(reduced), copy, {scratch(1)}, {out(0)});
  EXPECT_EQ(after(pass::dependency_sync, reduced), "copy nop copy");
  // The input of rank 1 is the second half of its output.
  Plan gathered = with("allgather", 4, 8);
  for (const uint64_t chunk : {1, 5}) {
    Plan plan = gathered;
    add(block(plan, 1), copy, {in(1)}, {scratch(0)});
    add(block(plan, 1), copy, {scratch(1)}, {out(chunk)});
    pass::dependency_sync(plan, plain);
    EXPECT_EQ(words(plan, 1), chunk == 5 ? "copy nop copy" : "copy copy");
  }
  // The output of rank 1 is the second half of its input.
  Plan scattered = with("reducescatter", 8, 4);
  add(block(scattered, 1), copy, {in(6)}, {scratch(0)});
  add(block(scattered, 1), copy, {scratch(1)}, {out(2)});
  pass::dependency_sync(scattered, plain);
  EXPECT_EQ(words(scattered, 1), "copy nop copy");
}

TEST(DependencySync, BetweenTurnsOfAPipeline) {
  Plan plan = two_ranks();  // each turn has its own unit
  loop(plan, 2);
  add(block(plan), copy, {in(0)}, {scratch(0)});
  add(block(plan), copy, {scratch(0)}, {out(0)});
  EXPECT_EQ(after(pass::dependency_sync, plan), "pipeline(copy nop copy)");

  Plan shifted = two_ranks();  // but not where chunks overlap
  loop(shifted, 2);
  add(block(shifted), copy, {in(0, 2)}, {scratch(0, 2)});
  add(block(shifted), copy, {scratch(1, 2)}, {out(0, 2)});
  EXPECT_EQ(after(pass::dependency_sync, shifted), "pipeline(nop copy nop copy)");

  Plan reused = plan;  // nor where scratch wraps
  reused.reuse_resources = true;
  EXPECT_EQ(after(pass::dependency_sync, reused), "pipeline(nop copy nop copy)");
}

TEST(DependencySync, AroundPipelines) {
  Plan plan = two_ranks();
  add(block(plan), copy, {in(0)}, {scratch(0)});
  loop(plan, 1);
  add(block(plan), copy, {scratch(0)}, {out(0)});
  add(block(plan), copy, {out(0)}, {scratch(1)});
  EXPECT_EQ(after(pass::dependency_sync, plan), "copy nop pipeline(copy) nop copy");
}

TEST(DependencySync, FencesOfTurnsCountOutsideButNotForMscclpp) {
  Plan plan = two_ranks();
  add(block(plan), copy, {in(0)}, {scratch(0)});
  loop(plan, 4);
  add(block(plan), copy, {in(1)}, {out(1)});
  add(block(plan), nop);
  add(block(plan), copy, {scratch(0)}, {out(0)});
  add(block(plan), nop);
  add(block(plan), copy, {out(0)}, {scratch(1)});
  Plan theirs = plan;
  EXPECT_EQ(after(pass::dependency_sync, plan), "copy pipeline(copy nop copy nop) copy");
  EXPECT_EQ(after(pass::dependency_sync, theirs, {.target = Target::mscclpp}),
            "copy nop pipeline(copy nop copy nop) nop copy");
}

}  // namespace
}  // namespace chorale
