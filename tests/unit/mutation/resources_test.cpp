// These tests have operators that change port channels, switch channels, groups and pipelines, and the plan
// as a whole.

#include "mutants.hpp"

namespace chorale::mutation {
namespace {

using enum ChannelType;

Plan pipeline() {
  Plan plan = empty_plan();
  loop(plan, 2);
  add(block(plan), Opcode::copy, {in(0)}, {scratch(0)});
  add(block(plan), Opcode::copy, {scratch(0)}, {out(0)});
  return plan;
}

std::string pipeline_text(const Plan& plan) {
  const Op& op = plan.gpus[0].threadblocks[0].ops[0];
  return std::to_string(op.body) + " in it, " + std::to_string(op.unit_bytes) + " bytes per turn, " +
         std::to_string(op.chunks) + " chunks\n";
}

TEST(Operator, drop_flush) {
  Plan plan = empty_plan();
  add(block(plan), Opcode::flush, {}, {}, {0}, port);
  add(block(plan), Opcode::put_with_signal_and_flush, {in(0)}, {at(1, 0)}, {0}, port);
  EXPECT_EQ(mutants("drop_flush", plan), R"(
- 0.0 flush rank 1 (port channel 0)

- 0.0 put_with_signal_and_flush input[0:1] -> output[0:1] of rank 1, then signals rank 1 (port channel 0)
+ 0.0 put_with_signal input[0:1] -> output[0:1] of rank 1, then signals rank 1 (port channel 0)
)");
}

TEST(Operator, duplicate_member) {
  Plan plan = empty_plan();
  for (uint16_t member = 0; member < 2; ++member) {
    Op& op = add(block(plan, 0, member), Opcode::copy, {in(0)}, {out(0)});
    op.group_index = member;
    op.group_size = 2;
  }
  EXPECT_EQ(mutants("duplicate_member", plan), R"(
- 0.0 copy input[0:1] -> output[0:1], part 0 of 2
+ 0.0 copy input[0:1] -> output[0:1], part 1 of 2

- 0.1 copy input[0:1] -> output[0:1], part 1 of 2
+ 0.1 copy input[0:1] -> output[0:1], part 0 of 2
)");
}

TEST(Operator, pipeline_unit) {
  EXPECT_EQ(mutants("pipeline_unit", pipeline(), pipeline_text), R"(
- 0.0 pipeline over 1 chunk in units of 64 bytes: the next 2 operations
+ 0.0 pipeline over 1 chunk in units of 128 bytes: the next 2 operations
2 in it, 128 bytes per turn, 1 chunks
)");
}
TEST(Operator, pipeline_chunks) {
  EXPECT_EQ(mutants("pipeline_chunks", pipeline(), pipeline_text), R"(
- 0.0 pipeline over 1 chunk in units of 64 bytes: the next 2 operations
+ 0.0 pipeline over 2 chunks in units of 64 bytes: the next 2 operations
2 in it, 64 bytes per turn, 2 chunks
)");
}
TEST(Operator, pipeline_body) {
  EXPECT_EQ(mutants("pipeline_body", pipeline(), pipeline_text), R"(
- 0.0 pipeline over 1 chunk in units of 64 bytes: the next 2 operations
+ 0.0 pipeline over 1 chunk in units of 64 bytes: the next 1 operation
- 0.0   copy scratch[0:1] -> output[0:1]
+ 0.0 copy scratch[0:1] -> output[0:1]
1 in it, 64 bytes per turn, 1 chunks
)");
}

TEST(Operator, flip_reuse) {
  EXPECT_EQ(
      mutants("flip_reuse", pipeline(), [](const Plan& plan) { return plan.reuse_resources ? "yes" : "no"; }),
      "\nyes");
  EXPECT_EQ(mutants("flip_reuse", empty_plan()), "\n") << "nothing takes turns";
}

TEST(Operator, flip_in_place) {
  EXPECT_EQ(
      mutants("flip_in_place", empty_plan(), [](const Plan& plan) { return plan.inplace ? "yes" : "no"; }),
      "\nyes");
}

TEST(Operator, wrong_root) {
  Plan plan = empty_plan();
  EXPECT_EQ(mutants("wrong_root", plan), "\n");
  plan.collective = "broadcast";
  EXPECT_EQ(mutants("wrong_root", plan, [](const Plan& of) { return std::to_string(of.extension.root); }),
            "\n1");
}

TEST(Operator, drop_switch_member) {
  EXPECT_EQ(mutants("drop_switch_member", empty_plan(),
                    [](const Plan& plan) {
                      std::string text;
                      for (const Gpu& gpu : plan.gpus) {
                        for (const ChannelRecord& record : gpu.channels) {
                          for (const std::vector<uint32_t>& ranks : record.rank_groups) {
                            for (const uint32_t rank : ranks) text += std::to_string(rank);
                            text += ' ';
                          }
                        }
                      }
                      return text + "\n";
                    }),
            R"(
0 01 01 01 

01 0 01 01 

01 01 1 01 

01 01 01 1 
)");
}

TEST(Operator, swap_channel_type) {
  Plan plan = empty_plan();
  add(block(plan), Opcode::put, {in(0)}, {at(1, 0)}, {}, memory);
  add(block(plan, 1), Opcode::put_packets, {in(0)}, {at(2, 0)}, {1}, port);
  EXPECT_EQ(mutants("swap_channel_type", plan), R"(
- 0.0 put input[0:1] -> output[0:1] of rank 1 (memory)
+ 0.0 put input[0:1] -> output[0:1] of rank 1 through rank 1 (port channel 0)

- 1.0 put_packets input[0:1] -> scratch[0:1] of rank 0 through rank 0 (port channel 1)
+ 1.0 put_packets input[0:1] -> scratch[0:1] of rank 0 (memory)
)");
  // A rank without ports gets one, and so does its peer.
  for (Gpu& gpu : plan.gpus) {
    std::erase_if(gpu.channels, [](const ChannelRecord& record) { return record.type == port; });
    for (ThreadBlock& in : gpu.threadblocks) {
      std::erase_if(in.channels, [](const ChannelRefs& refs) { return refs.type == port; });
    }
  }
  block(plan, 1).ops.clear();
  EXPECT_EQ(mutants("swap_channel_type", plan,
                    [](const Plan& of) {
                      return std::to_string(of.gpus[0].channel_count(port)) + " and " +
                             std::to_string(of.gpus[1].channel_count(port)) + "\n";
                    }),
            R"(
- 0.0 put input[0:1] -> output[0:1] of rank 1 (memory)
+ 0.0 put input[0:1] -> output[0:1] of rank 1 through rank 1 (port channel 0)
1 and 1
)");
}

TEST(Operator, reorder_pushes) {
  Plan plan = empty_plan();
  add(block(plan), Opcode::put, {in(0)}, {at(1, 0)}, {0}, port);
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::signal, {}, {}, {0}, port);
  add(block(plan), Opcode::flush, {}, {}, {0}, port);
  EXPECT_EQ(mutants("reorder_pushes", plan), R"(
- 0.0 put input[0:1] -> output[0:1] of rank 1 through rank 1 (port channel 0)
- 0.0 nop
+ 0.0 nop
+ 0.0 put input[0:1] -> output[0:1] of rank 1 through rank 1 (port channel 0)
)");
}

}  // namespace
}  // namespace chorale::mutation
