// These tests run all passes, one after the other.

#include "tests/unit/compiler/helpers.hpp"

namespace chorale {
namespace {

using enum Opcode;
using enum ChannelType;

TEST(Compile, RunsAllPasses) {
  Plan plan = two_ranks();
  for (const uint32_t rank : {0, 1}) {
    ThreadBlock& ops = block(plan, rank);
    add(ops, copy, {in(0)}, {scratch(0)});
    add(ops, put, {scratch(0)}, {at(2, 1)}, {}, memory);
    add(ops, signal, {}, {}, {0}, memory).sync = SyncType::both;
    add(ops, wait, {}, {}, {0}, memory).sync = SyncType::both;
  }
  const Diagnostics found = compile(plan, {.instances = 2});
  EXPECT_EQ(render(plan, found), "");
  EXPECT_EQ(words(plan, 1, 1), "copy nop put nop signal nop wait nop");
}

TEST(Compile, RefusesWhatCannotBeReplicated) {
  Plan plan = two_ranks();
  EXPECT_EQ(all_texts(compile(plan, {.instances = 0})),
            "[replicate] the program has 0 instances, expected 1 to 1024\n");
  plan.gpus[1].chunks[2] = uint64_t(1) << 32;
  EXPECT_EQ(all_texts(compile(plan, {.instances = 2})),
            "[replicate] a buffer of rank 1 has 4294967296 chunks in 2 instances, expected at most "
            "2147483648\n");
}

}  // namespace
}  // namespace chorale
