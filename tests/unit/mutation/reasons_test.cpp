// These tests check the reasons why mutants are nevertheless right.

#include "tests/mutation/reasons.hpp"

#include "mutants.hpp"

namespace chorale::mutation {
namespace {

using enum ChannelType;

/// Returns "path: ..." of every mutant of an operator, without checking that it is right.
std::string reasons(const std::string& name, const Plan& plan) {
  Judge judge;
  judge.check = [](const Plan&) { return Diagnostics{}; };
  judge.explain = find_reason;
  std::string text = "\n";
  for (const Mutant& mutant : mutate(plan, {.operators = {&operator_named(name)}}, judge)) {
    text += mutant.by + ": " + mutant.text + "\n";
  }
  return text;
}

/// Returns a copy through scratch, with synchronisations of the threads around it.
Plan through_scratch() {
  Plan plan = empty_plan();
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::copy, {in(0)}, {scratch(0)});
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::copy, {scratch(0)}, {out(0)});
  return plan;
}

/// Rank 0 puts and signals, and rank 1 copies what arrived. The channels of both thread blocks do the
/// signalling.
Plan two_signals() {
  Plan plan = empty_plan();
  add(block(plan), Opcode::put, {in(0)}, {at(2, 0)}, {}, memory);
  add(block(plan), Opcode::nop);
  add(block(plan, 1), Opcode::nop);
  for (uint32_t channel = 0; channel < 2; ++channel) {
    add(block(plan), Opcode::signal, {}, {}, {channel}, memory);
    add(block(plan, 1), Opcode::wait, {}, {}, {channel}, memory);
  }
  add(block(plan, 1), Opcode::nop);
  add(block(plan, 1), Opcode::copy, {scratch(0)}, {out(0)});
  return plan;
}

TEST(Reason, AnotherSynchronisationOfTheThreads) {
  EXPECT_EQ(reasons("drop_nop", through_scratch()), R"(
path: the application of rank 0 overwrites the input before launch 1 comes before copy 0.0.0 in launch 1 all the same; and so with all 12 such pairs
path: copy 0.0.1 in launch 1 comes before copy 0.0.3 in launch 1 all the same by nop 0.0.2; and so with all 13 such pairs
)");
}

TEST(Reason, AnotherChannel) {
  EXPECT_EQ(reasons("drop_entry_sync", two_signals()), R"(
path: put 0.0.0 in launch 1 comes before copy 1.0.3 in launch 1 all the same by nop 0.0.1, signal 0.0.2, wait 1.0.1, nop 1.0.2; and so with all 8 such pairs
path: put 0.0.0 in launch 1 comes before copy 1.0.3 in launch 1 all the same by nop 0.0.1, signal 0.0.2, wait 1.0.1, nop 1.0.2; and so with all 8 such pairs
)");
}

TEST(Reason, EqualValues) {
  EXPECT_EQ(reasons("split_operation", through_scratch()), R"(
values: every output holds what it should, although thread block 0 of rank 0 touches other memory or in another order
values: every output holds what it should, although thread block 0 of rank 0 touches other memory or in another order
)");
}

// No path can be found, because only a signal that publishes nothing is left.
TEST(Reason, IsNotMadeUp) {
  Plan plan = two_signals();
  std::erase_if(block(plan).ops,
                [&](const Op& op) { return op.code == Opcode::signal && block(plan).op_ids(op)[0] == 1; });
  std::erase_if(block(plan, 1).ops,
                [&](const Op& op) { return op.code == Opcode::wait && block(plan, 1).op_ids(op)[0] == 1; });
  EXPECT_EQ(reasons("relax_signal", plan), R"(
unexplained: put 0.0.0 in launch 1 before copy 1.0.3 in launch 1
)");
}

}  // namespace
}  // namespace chorale::mutation
