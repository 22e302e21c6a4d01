// These tests check the op table, look-ups in a plan, appending, and findings as text.

#include <set>
#include <utility>

#include "tests/unit/compiler/helpers.hpp"

namespace chorale {
namespace {

TEST(OpTable, HasEveryWordOnce) {
  std::set<std::string_view> names, mnemonics;
  for (size_t code = 0; code < op_table().size(); ++code) {
    const OpInfo& row = op_table()[code];
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(mnemonics.insert(row.mnemonic).second) << row.mnemonic;
    EXPECT_EQ(find_opcode(row.name), int(code));
    EXPECT_EQ(find_opcode(row.mnemonic), int(code));
    EXPECT_EQ(&info(Opcode(code)), &row);
  }
  EXPECT_EQ(find_opcode("start"), -1);
}

TEST(OpTable, RolesOfARow) {
  const OpInfo& row = info(Opcode::reduce_send);
  ASSERT_EQ(row.fields.size(), 7u);
  EXPECT_EQ(row.fields[1].name, "others");
  EXPECT_TRUE(row.fields[1].many);
  EXPECT_FALSE(row.fields[1].in_dst);
  EXPECT_EQ(row.fields[3].role, Role::RemoteWrite);
  EXPECT_TRUE(row.has(Role::Sliced));
  EXPECT_TRUE(info(Opcode::nop).fields.empty());
}

TEST(Append, TakesListsOfItsOwnPool) {
  ThreadBlock block;
  append(block, Opcode::reduce, std::vector{in(0), in(1), in(2)}, std::vector{out(5)},
         std::vector<uint32_t>{1, 2});
  for (int turn = 0; turn < 20; ++turn) {
    const Op first = block.ops[0];
    const ThreadBlock& same = block;
    append(block, Opcode::reduce, same.sources(first), same.dests(first), same.op_ids(first));
  }
  for (const Op& op : block.ops) {
    EXPECT_EQ(std::as_const(block).sources(op)[2], in(2));
    EXPECT_EQ(std::as_const(block).dests(op)[0], out(5));
    EXPECT_EQ(block.op_ids(op)[1], 2u);
  }
}

TEST(Gpu, FindsChannelsOverAllRecords) {
  Gpu gpu;
  gpu.channels.push_back({.type = ChannelType::memory, .connected_to = {3, 4}, .rank_groups = {}});
  gpu.channels.push_back(
      {.type = ChannelType::switched, .connected_to = {}, .rank_groups = {{0, 1}, {0, 2}}});
  gpu.channels.push_back({.type = ChannelType::memory, .connected_to = {5}, .rank_groups = {}});
  EXPECT_EQ(gpu.channel_count(ChannelType::memory), 3u);
  EXPECT_EQ(gpu.peer(ChannelType::memory, 2), 5);
  EXPECT_EQ(gpu.peer(ChannelType::memory, 3), -1);
  EXPECT_EQ(gpu.peer(ChannelType::port, 0), -1);
  EXPECT_EQ((*gpu.switch_group(1).ranks)[1], 2u);
  EXPECT_EQ(gpu.switch_group(2).ranks, nullptr);
}

TEST(SegmentationOf, Collectives) {
  Plan plan = two_ranks();
  const auto of = [&](const char* collective) {
    plan.collective = collective;
    const Segmentation parts = segmentation(plan);
    return std::pair(parts.input, parts.output);
  };
  using Pair = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(of("allreduce"), Pair(1, 1));
  EXPECT_EQ(of("allgather"), Pair(1, 2));
  EXPECT_EQ(of("reducescatter"), Pair(2, 1));
  EXPECT_EQ(of("alltoall"), Pair(2, 2));
  EXPECT_EQ(of("custom"), Pair(8, 8));
  plan.extension.output_segments = 4;
  EXPECT_EQ(of("custom"), Pair(8, 4));
}

TEST(Render, PlaceOperationNotesAndHelp) {
  Plan plan = two_ranks();
  plan.source = {{"mine.cpp", 11}};
  add(block(plan), Opcode::wait, {}, {}, {0}, ChannelType::memory).at = 1;
  add(block(plan), Opcode::nop);
  const Diagnostic finding{"pairing",
                           {},
                           OpPlace{0, 0, 0},
                           "this wait is never answered",
                           {{{}, OpPlace{0, 0, 1}, "here"}, {{"b.cpp", 3}, {}, "there"}},
                           "add a signal"};
  EXPECT_EQ(render(plan, finding),
            "mine.cpp:11: error: this wait is never answered [pairing]\n"
            "  rank 0, thread block 0, op 0: wait rank 1 (memory channel 0)\n"
            "two: note: here\n"
            "  rank 0, thread block 0, op 1: nop\n"
            "b.cpp:3: note: there\n"
            "help: add a signal\n");
  EXPECT_EQ(render(plan, Diagnostics{}), "");
  const std::string two = render(plan, Diagnostics{finding, finding});
  EXPECT_EQ(two.substr(two.size() - 9), "2 errors\n");
}

TEST(Diagnostic, JsonPaths) {
  Plan plan = two_ranks();
  plan.source = {{"mine.cpp", 11}};
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::pipeline).body = 2;
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::nop).at = 1;
  const auto path = [&](std::optional<OpPlace> at, std::string within) {
    const std::string text = render(plan, Diagnostic{"bounds", {}, at, "wrong", {}, {}, std::move(within)});
    const size_t head = text.find("  in the plan: ");
    return head == text.npos ? "none" : text.substr(head + 15, text.find('\n', head) - head - 15);
  };
  EXPECT_EQ(path({}, "/gpus/1/channels"), "/gpus/1/channels");
  EXPECT_EQ(path({}, ""), "none");
  EXPECT_EQ(path(OpPlace{0, 0, 0}, ""), "/gpus/0/threadblocks/0/ops/0");
  EXPECT_EQ(path(OpPlace{0, 0, 3}, "at"), "/gpus/0/threadblocks/0/ops/1/ops/1/at");
  // If the author's line is known, the finding names it.
  EXPECT_EQ(path(OpPlace{0, 0, 4}, ""), "none");
  EXPECT_EQ(path(OpPlace{0, 0, 4}, "dst_buff/0"), "/gpus/0/threadblocks/0/ops/2/dst_buff/0");
}

/// Each operation is a pipeline or in one, and all are in one thread block.
TEST(Diagnostic, ManyEachSayWhereTheyAre) {
  Plan plan = two_ranks();
  Diagnostics findings;
  constexpr uint32_t pairs = 100;
  for (uint32_t op = 0; op < 2 * pairs; ++op) {
    add(block(plan), op % 2 ? Opcode::nop : Opcode::pipeline).body = 1 - op % 2;
    findings.push_back({"bounds", {}, OpPlace{0, 0, op}, "wrong", {}, {}});
  }
  const std::string text = render(plan, findings);
  for (uint32_t pair = 0; pair < pairs; ++pair) {
    const std::string pipeline = "in the plan: /gpus/0/threadblocks/0/ops/" + std::to_string(pair);
    EXPECT_NE(text.find(pipeline + "\n"), text.npos);
    EXPECT_NE(text.find(pipeline + "/ops/0\n"), text.npos);
  }
}

}  // namespace
}  // namespace chorale
