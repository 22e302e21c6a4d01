// These tests check which needs beyond MSCCL++ a plan states.

#include "chorale/rewrites.hpp"
#include "tests/unit/compiler/helpers.hpp"

namespace chorale {
namespace {

using enum Opcode;
using enum ChannelType;
const CompileOptions no_options{};

TEST(MarkRequirements, OnlyWhatMscclppLacks) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::reduce, {in(0), in(1)}, {in(0)});
  EXPECT_EQ(after(pass::mark_requirements, plan), "re");
  add(block(plan), Opcode::reduce, {in(0), in(1)}, {in(0)}).reduce_op = ReduceOp::max;
  add(block(plan), flush, {}, {}, {0}, port);
  add(block(plan, 0, 1), switch_reduce, {at(0, 0)}, {in(2)}, {}, switched);
  EXPECT_EQ(after(pass::mark_requirements, plan), "chorale_require re re flush");
  EXPECT_EQ(plan.extension.requirements, (std::vector<std::string>{"reduce_op", "flush", "switch_reduce"}));
  EXPECT_FALSE(pass::mark_requirements(plan, no_options));
  EXPECT_EQ(write(read(write(plan))), write(plan));
}

TEST(MarkRequirements, AreTheWordsOfTheTables) {
  EXPECT_EQ(std::vector<std::string>(known_requirements.begin(), known_requirements.end()),
            (std::vector<std::string>{"reduce_op", "flush", "switch_reduce", "codecs", "combine_packets"}));
}

TEST(MarkRequirements, AnOperationOfOursIsAMark) {
  Plan plan = two_ranks();
  add(block(plan), reduce, {in(0), in(1)}, {in(0)}).reduce_op = ReduceOp::max;
  add(block(plan, 1), combine_packets, {scratch(0), scratch(1)}, {out(0)});
  EXPECT_EQ(after(pass::mark_requirements, plan), "re");
  EXPECT_EQ(plan.extension.requirements, (std::vector<std::string>{"reduce_op", "combine_packets"}));
  EXPECT_FALSE(pass::mark_requirements(plan, no_options));
  EXPECT_EQ(write(read(write(plan))), write(plan));
}

}  // namespace
}  // namespace chorale
