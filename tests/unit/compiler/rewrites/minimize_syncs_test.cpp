// These tests remove the synchronisations that no proof needs.

#include "chorale/rewrites.hpp"
#include "tests/unit/compiler/helpers.hpp"

namespace chorale {
namespace {

using enum Opcode;
using enum ChannelType;
constexpr CompileOptions minimal{.minimize_syncs = true};

/// Returns a copy through scratch that has one synchronisation of the threads too many.
Plan copies() {
  Plan plan = two_ranks();
  add(block(plan), nop);
  add(block(plan), copy, {in(0)}, {scratch(0)});
  add(block(plan), nop);
  add(block(plan), nop);
  add(block(plan), copy, {scratch(0)}, {out(1)});
  return plan;
}

TEST(MinimizeSyncs, IsOffByDefault) {
  Plan plan = copies();
  EXPECT_EQ(after(pass::minimize_syncs, plan), "nop copy nop nop copy");
}

TEST(MinimizeSyncs, KeepsWhatARaceNeeds) {
  Plan plan = copies();
  EXPECT_EQ(after(pass::minimize_syncs, plan, minimal), "copy nop copy");
}

// An author's line is in several blocks. One of them may need the synchronisation although the others do not.
TEST(MinimizeSyncs, BlocksOfOneLineOneByOne) {
  Plan plan = two_ranks();
  for (uint32_t id = 0; id < 2; ++id) {
    add(block(plan, 0, id), copy, {in(id)}, {scratch(id)});
    add(block(plan, 0, id), nop);
    add(block(plan, 0, id), copy, {id ? in(5) : scratch(0)}, {out(id)});
  }
  EXPECT_EQ(after(pass::minimize_syncs, plan, minimal), "copy nop copy");
  EXPECT_EQ(words(plan, 0, 1), "copy copy");
}

// A signal publishes what its block did before, and a wait stops all of its threads. Neither needs more.
TEST(MinimizeSyncs, AroundSignals) {
  Plan plan = two_ranks();
  for (const Opcode code : {wait, put, signal}) {
    add(block(plan), nop);
    if (code == put)
      add(block(plan), put, {in(0)}, {at(1, 0)}, {}, memory);
    else
      add(block(plan), code, {}, {}, {0}, memory);
  }
  add(block(plan, 1), signal, {}, {}, {0}, memory);
  add(block(plan, 1), wait, {}, {}, {0}, memory);
  EXPECT_EQ(after(pass::minimize_syncs, plan, minimal), "wait put signal");
}

TEST(MinimizeSyncs, InsideAPipeline) {
  Plan plan = two_ranks();
  plan.gpus[0].chunks[0] = plan.gpus[0].chunks[1] = 1;
  loop(plan, 4);
  add(block(plan), copy, {in(0)}, {scratch(0)});
  add(block(plan), nop);
  add(block(plan), copy, {scratch(0)}, {out(0)});
  add(block(plan), nop);
  EXPECT_EQ(after(pass::minimize_syncs, plan, minimal), "pipeline(copy nop copy)");
}

TEST(MinimizeSyncs, LeavesAPlanThatIsNotProved) {
  Plan plan = two_ranks();
  add(block(plan), copy, {in(0)}, {scratch(0)});
  add(block(plan), copy, {scratch(0)}, {out(0)});
  add(block(plan), nop);
  EXPECT_EQ(after(pass::minimize_syncs, plan, minimal), "copy copy nop");
}

TEST(MinimizeSyncs, IsForOurExecutor) {
  Plan plan = copies();
  EXPECT_THROW(compile(plan, {.target = Target::mscclpp, .minimize_syncs = true}), std::invalid_argument);
}

}  // namespace
}  // namespace chorale
