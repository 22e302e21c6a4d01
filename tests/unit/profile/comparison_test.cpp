// These tests compare measured spans with predicted ones when every time is known. tests/unit/lowering has
// the spans of the device programs that GPUs run.

#include "tests/unit/profile/compared.hpp"

namespace chorale {
namespace {

std::string words(const ProfilePlace& place) {
  return std::string(place.name) + ":" + std::to_string(place.line.line);
}

std::string words(const BlockTimes& times) {
  return std::to_string(times.median_ns / 1000) + "/" + std::to_string(times.longest_ns / 1000) + "@" +
         std::to_string(times.rank) + "." + std::to_string(times.block);
}

/// Returns "operation:line measured predicted of blocks kind with others", times as median/longest@rank.block
/// in microseconds.
std::string words(const std::vector<ComparedLine>& lines) {
  const char* const kinds[] = {"work", "packets", "turns", "waits"};
  std::string text;
  for (const ComparedLine& line : lines) {
    text += words(line.place) + " " + words(line.measured) + " " + words(line.predicted) + " of " +
            std::to_string(line.blocks) + " " + kinds[size_t(line.kind)];
    for (const ProfilePlace& other : line.with) text += " +" + words(other);
    text += "\n";
  }
  return text;
}

TEST(Comparison, IsOfThreadBlocksOfAllRanks) {
  Plan plan = two_ranks();
  for (const uint32_t rank : {0u, 1u})
    for (const uint32_t on : {0u, 1u}) add(block(plan, rank, on), Opcode::copy, {in(on)}, {out(on)});
  plan.source.push_back({"a.cpp", 2});
  for (Gpu& gpu : plan.gpus)
    for (ThreadBlock& block : gpu.threadblocks) block.ops[0].at = 1;
  std::vector<TraceSpan> ran, simulated;
  took(ran, plan, 0, 0, {{0, 10}}, 100);
  took(ran, plan, 0, 1, {{0, 40}}, 100);
  took(ran, plan, 1, 0, {{0, 16}}, 120);
  took(ran, plan, 1, 1, {{0, 12}}, 120);
  for (const uint32_t rank : {0u, 1u})
    for (const uint32_t on : {0u, 1u}) took(simulated, plan, rank, on, {{0, 5 + rank}}, 0, 1);
  const Comparison found = compare(plan, traced_bytes, ran, Clocks::one, simulated);
  EXPECT_EQ(found.launch, traced_launch);
  EXPECT_EQ(found.measured_ns, 40000u);
  EXPECT_EQ(found.predicted_ns, 6000u);
  EXPECT_EQ(words(found.lines), "copy:2 14/40@0.1 5/6@1.0 of 4 work\n");
  EXPECT_EQ(found.lines[0].gap_ns(), 14000 - 5500);
}

TEST(Comparison, ClocksOfRanksMayDiffer) {
  const Plan plan = exchange();
  std::vector<TraceSpan> ran, simulated;
  took(ran, plan, 0, 0, {{0, 10}, {1, 2}, {2, 3}}, 5000);
  took(ran, plan, 1, 0, {{0, 20}, {1, 2}, {2, 1}}, 100);
  for (const uint32_t rank : {0u, 1u}) took(simulated, plan, rank, 0, {{0, 4}, {1, 1}, {2, 2}}, 0, 1);
  EXPECT_EQ(compare(plan, traced_bytes, ran, Clocks::one, simulated).measured_ns, 4915000u);
  EXPECT_EQ(compare(plan, traced_bytes, ran, Clocks::per_rank, simulated).measured_ns, 23000u);
  EXPECT_EQ(compare(plan, traced_bytes, ran, Clocks::per_rank, simulated).predicted_ns, 7000u);
}

TEST(Comparison, ATurnOfALoopAddsToItsLine) {
  Plan plan = two_ranks();
  for (int turn = 0; turn < 3; ++turn) add(block(plan), Opcode::copy, {in(0)}, {out(0)});
  plan.source.push_back({"a.cpp", 9});
  for (Op& op : block(plan).ops) op.at = 1;
  const Comparison found = compare_block(plan, {{0, 3}, {1, 4}, {2, 5}}, {{0, 1}, {1, 1}, {2, 2}});
  EXPECT_EQ(words(found.lines), "copy:9 12/12@0.0 4/4@0.0 of 1 work\n");
}

TEST(Comparison, LargestGapsFirstAndWaitsLast) {
  Plan plan = two_ranks();
  for (int op = 0; op < 3; ++op) add(block(plan), Opcode::copy, {in(0)}, {out(0)});
  add(block(plan), Opcode::wait, {}, {}, {0}, ChannelType::memory);
  add(block(plan), Opcode::unpack_packets, {scratch(0)}, {out(0)});
  number_lines(plan);
  const Comparison found = compare_block(plan, {{0, 5}, {1, 1}, {2, 9}, {3, 90}, {4, 30}},
                                         {{0, 4}, {1, 7}, {2, 9}, {3, 2}, {4, 20}});
  EXPECT_EQ(words(found.lines),
            "unpack_packets:5 30/30@0.0 20/20@0.0 of 1 packets\n"
            "copy:2 1/1@0.0 7/7@0.0 of 1 work\n"
            "copy:1 5/5@0.0 4/4@0.0 of 1 work\n"
            "copy:3 9/9@0.0 9/9@0.0 of 1 work\n"
            "wait:4 90/90@0.0 2/2@0.0 of 1 waits\n");
  ASSERT_EQ(found.kinds.size(), 3u);
  EXPECT_EQ(found.kinds[0].kind, TimeKind::work);
  EXPECT_EQ(found.kinds[0].measured.median_ns, 15000u);
  EXPECT_EQ(found.kinds[0].predicted.median_ns, 20000u);
  EXPECT_EQ(found.kinds[1].kind, TimeKind::packets);
  EXPECT_EQ(found.kinds[2].kind, TimeKind::waits);
  EXPECT_EQ(found.kinds[2].measured.median_ns, 90000u);
}

TEST(Comparison, WhatAGpuPostsSideBySideIsOne) {
  Plan plan = two_ranks();
  for (const uint32_t id : {0u, 1u}) add(block(plan), Opcode::signal, {}, {}, {id}, ChannelType::memory);
  for (const uint32_t id : {0u, 1u}) add(block(plan), Opcode::wait, {}, {}, {id}, ChannelType::memory);
  number_lines(plan);
  const Comparison found = compare_block(plan, {{0, 5}, {2, 9}}, {{0, 2}, {1, 2}, {2, 3}, {3, 4}});
  EXPECT_EQ(words(found.lines),
            "signal:1 5/5@0.0 4/4@0.0 of 1 work +signal:2\n"
            "wait:3 9/9@0.0 7/7@0.0 of 1 waits +wait:4\n");
  EXPECT_TRUE(found.only_measured.empty());
  EXPECT_TRUE(found.only_predicted.empty());
}

TEST(Comparison, SmallCopiesMayBePlayedInOneGo) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::put, {in(0)}, {at(1, 0)}, {}, ChannelType::memory);
  add(block(plan), Opcode::copy, {in(0)}, {out(0)});
  number_lines(plan);
  EXPECT_EQ(words(compare_block(plan, {{0, 5}}, {{0, 2}, {1, 2}}).lines),
            "put:1 5/5@0.0 4/4@0.0 of 1 work +copy:2\n");
}

TEST(Comparison, OwnPacketsBelongToTheSumBehindThem) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::copy, {in(0)}, {out(0)});
  add(block(plan), Opcode::copy_packets, {in(0)}, {scratch(0)});
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::combine_packets, {scratch(0), scratch(1)}, {out(0)});
  number_lines(plan);
  EXPECT_EQ(words(compare_block(plan, {{0, 5}, {3, 8}}, {{0, 5}, {1, 2}, {3, 4}}).lines),
            "combine_packets:4 8/8@0.0 6/6@0.0 of 1 packets +copy_packets:2\n"
            "copy:1 5/5@0.0 5/5@0.0 of 1 work\n");
  // They count as their own if they have a span.
  EXPECT_EQ(words(compare_block(plan, {{0, 5}, {1, 1}, {2, 3}, {3, 8}}, {{0, 5}, {1, 2}, {3, 4}}).lines),
            "combine_packets:4 11/11@0.0 4/4@0.0 of 1 packets +nop:3\n"
            "copy_packets:2 1/1@0.0 2/2@0.0 of 1 work\n"
            "copy:1 5/5@0.0 5/5@0.0 of 1 work\n");
}

TEST(Comparison, SynchronisationBelongsToWhatIsBehindIt) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::copy, {in(0)}, {out(0)});
  add(block(plan), Opcode::nop);
  number_lines(plan);
  const Comparison found = compare_block(plan, {{0, 1}, {1, 2}, {2, 4}, {3, 8}}, {{2, 5}});
  EXPECT_EQ(words(found.lines), "copy:3 7/7@0.0 5/5@0.0 of 1 work +nop:1 +nop:2\n");
  EXPECT_EQ(words(found.only_measured), "nop:4 8/8@0.0 0/0@0.0 of 1 work\n");
}

TEST(Comparison, TurnsOfAPipelineAreNotedAsTheOperationBefore) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::signal, {}, {}, {0}, ChannelType::memory);
  Op& pipeline = add(block(plan), Opcode::pipeline);
  pipeline.body = 1;
  add(block(plan), Opcode::copy, {in(0)}, {out(0)});
  number_lines(plan);
  const Took predicted = {{0, 2}, {1, 30}, {2, 3}};
  const Comparison gpu = compare_block(plan, {{0, 40}, {2, 4}}, predicted);
  EXPECT_EQ(words(gpu.lines),
            "signal:1 40/40@0.0 32/32@0.0 of 1 turns +pipeline:2\n"
            "copy:3 4/4@0.0 3/3@0.0 of 1 work\n");
  const Comparison cpu = compare_block(plan, {{0, 1}, {1, 39}, {2, 4}}, predicted);
  EXPECT_EQ(words(cpu.lines),
            "pipeline:2 39/39@0.0 30/30@0.0 of 1 turns\n"
            "signal:1 1/1@0.0 2/2@0.0 of 1 work\n"
            "copy:3 4/4@0.0 3/3@0.0 of 1 work\n");
}

TEST(Comparison, WhatOnlyOneSideHasIsApart) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::wait, {}, {}, {0}, ChannelType::memory);
  add(block(plan), Opcode::copy, {in(0)}, {out(0)});
  add(block(plan), Opcode::signal, {}, {}, {0}, ChannelType::memory);
  add(block(plan), Opcode::reduce, {in(0), in(1)}, {out(0)});
  number_lines(plan);
  const Comparison found = compare_block(plan, {{1, 7}, {2, 3}}, {{0, 2}, {2, 1}, {3, 6}});
  EXPECT_EQ(words(found.lines), "signal:3 3/3@0.0 1/1@0.0 of 1 work\n");
  EXPECT_EQ(words(found.only_measured), "copy:2 7/7@0.0 0/0@0.0 of 1 work\n");
  EXPECT_EQ(words(found.only_predicted),
            "reduce:4 0/0@0.0 6/6@0.0 of 1 work\n"
            "wait:1 0/0@0.0 2/2@0.0 of 1 waits\n");
}

TEST(Comparison, IsOfTheLastLaunchOfAMessage) {
  const Plan plan = exchange();
  std::vector<TraceSpan> ran, simulated;
  took(ran, plan, 0, 0, {{0, 100}}, 0, 1);
  took(ran, plan, 0, 0, {{0, 10}}, 200, 2);
  took(ran, plan, 0, 0, {{0, 50}}, 300, 3);
  ran.back().bytes = 2 * traced_bytes;
  took(simulated, plan, 0, 0, {{0, 4}}, 0, 1);
  const Comparison found = compare(plan, traced_bytes, ran, Clocks::one, simulated);
  EXPECT_EQ(found.launch, 2u);
  EXPECT_EQ(words(found.lines), "put:1 10/10@0.0 4/4@0.0 of 1 work\n");
  EXPECT_EQ(compare(plan, 12, ran, Clocks::one, simulated).launch, 0u);
  const Comparison alone = compare(plan, traced_bytes, ran, Clocks::one, {});
  EXPECT_EQ(alone.predicted_ns, 0u);
  EXPECT_TRUE(alone.lines.empty());
  EXPECT_EQ(words(alone.only_measured), "put:1 10/10@0.0 0/0@0.0 of 1 work\n");
}

}  // namespace
}  // namespace chorale
