// These operations repeat what the previous one did.

#include "chorale/repeats.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/has.hpp"
#include "tests/unit/proof/findings.hpp"

namespace chorale {
namespace {

using test::has;

/// Returns the places of find_repeats().
std::string repeats(const Plan& plan) {
  std::string places;
  for (const Diagnostic& finding : find_repeats(plan)) places += place_of(*finding.at) + "\n";
  return places;
}

void reduce(Plan& plan, const std::vector<Operand>& from, const Operand& to) {
  add(block(plan), Opcode::reduce, from, {to});
}

TEST(Repeats, WarnAndRaceOnlyInName) {
  Plan plan = two_ranks();
  copy(plan, in(0), scratch(0));
  copy(plan, in(0), scratch(0));
  copy(plan, in(0), scratch(0));
  put(plan, in(1), 2, 5);
  put(plan, in(1), 2, 5);
  reduce(plan, {in(0), in(1)}, out(0));
  reduce(plan, {in(0), in(1)}, out(0));
  EXPECT_EQ(races(plan), "");
  EXPECT_EQ(repeats(plan), "0.0.1\n0.0.2\n0.0.4\n0.0.6\n");
  const Diagnostics found = find_repeats(plan);
  EXPECT_EQ(found[0].check, "repeats");
  EXPECT_TRUE(has(found[0].text, "superfluous, and the race is harmless"));
}

TEST(Repeats, WhatIsNoRepeatIsARace) {
  const auto refused = [](auto&& first, auto&& second) {
    Plan plan = two_ranks();
    first(plan);
    second(plan);
    EXPECT_EQ(repeats(plan), "");
    EXPECT_NE(races(plan), "") << words(plan);
  };
  const auto twice = [&](auto&& does) { refused(does, does); };
  // The second operation adds to the result again.
  twice([](Plan& plan) { reduce(plan, {out(0), in(1)}, out(0)); });
  twice([](Plan& plan) { reduce(plan, {in(1), out(0)}, out(0)); });
  // The first copy overwrites a source of the second.
  twice([](Plan& plan) { copy(plan, scratch(0, 2), scratch(1, 2)); });
  refused([](Plan& plan) { copy(plan, in(0), scratch(0)); },
          [](Plan& plan) { copy(plan, in(1), scratch(0)); });
  refused([](Plan& plan) { copy(plan, in(0), scratch(0)); },
          [](Plan& plan) { copy(plan, in(0), scratch(0), 1); });
  refused(
      [](Plan& plan) {
        reduce(plan, {in(0), in(1)}, out(0));
      },
      [](Plan& plan) {
        reduce(plan, {in(1), in(0)}, out(0));
      });
  refused(
      [](Plan& plan) {
        reduce(plan, {in(0), in(1)}, out(0));
      },
      [](Plan& plan) {
        reduce(plan, {in(0), in(1)}, out(0));
        block(plan).ops.back().reduce_op = ReduceOp::max;
      });
}

TEST(Repeats, InPlaceLookAtOneMemory) {
  Plan plan = two_ranks();
  plan.inplace = true;
  copy(plan, in(0), out(1));
  copy(plan, in(0), out(1));
  EXPECT_EQ(repeats(plan), "0.0.1\n");
  plan = two_ranks();
  plan.inplace = true;
  copy(plan, in(0, 2), out(1, 2));
  copy(plan, in(0, 2), out(1, 2));
  EXPECT_EQ(repeats(plan), "");
  EXPECT_NE(races(plan), "");
}

TEST(Repeats, OthersThatRaceWithThemAreFound) {
  Plan plan = two_ranks();
  copy(plan, in(0), scratch(0));
  copy(plan, in(0), scratch(0));
  copy(plan, scratch(0), out(0));
  EXPECT_TRUE(
      has(races(plan),
          "another thread of the block overwrites: nothing synchronises the threads in between at 0.0.2\n"
          "  the other operation is here at 0.0.0\n"))
      << races(plan);
  plan = two_ranks();
  copy(plan, in(0), scratch(0));
  copy(plan, in(0), scratch(0));
  copy(plan, scratch(0), out(0), 1);
  EXPECT_NE(races(plan), "");
}

TEST(Repeats, OfTransfersByAPortAreNone) {
  Plan plan = two_ranks();
  for (int times = 0; times < 2; ++times)
    add(block(plan), Opcode::put, {in(0)}, {at(2, 0)}, {0}, ChannelType::port);
  EXPECT_EQ(repeats(plan), "");
}

TEST(Repeats, InAPipelineAreInOneTurn) {
  Plan plan = two_ranks();
  loop(plan, 2);
  copy(plan, in(0), scratch(0));
  copy(plan, in(0), scratch(0));
  EXPECT_EQ(repeats(plan), "0.0.2\n");
  EXPECT_EQ(races(plan), "");
  // First the turn's share, and then all of it.
  plan = two_ranks();
  loop(plan, 1);
  copy(plan, in(0), scratch(0));
  copy(plan, in(0), scratch(0));
  EXPECT_EQ(repeats(plan), "");
}

}  // namespace
}  // namespace chorale
