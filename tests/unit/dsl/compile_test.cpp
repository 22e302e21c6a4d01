// These tests take the worked examples of the plan format from calls to the compiled plan.

#include <algorithm>

#include "helpers.hpp"

namespace chorale::dsl {
namespace {

using Ids = std::vector<uint32_t>;

std::string found(const Compiled& compiled) { return render(compiled.plan, compiled.diagnostics); }

/// Compiles programs that show a rewrite, although they contain races.
Compiled compile_unproved(const Program& program) {
  CompileOptions options = program.compile_options();
  options.allow = {"proofs"};
  return program.compile(options);
}

TEST(Compile, put_signal_wait) {
  Program program = two_ranks();
  MemoryChannel there(program, 1, 0), back(program, 0, 1);
  there.put(program.rank(1).get_output_buffer()[1], program.rank(0).get_input_buffer()[0], 0);
  there.signal(0);
  back.wait(0);
  const Compiled compiled = compile_unproved(program);
  ASSERT_EQ(found(compiled), "");
  EXPECT_EQ(ops(compiled.plan, 0), (Texts{"put i[0,1) > r0[1,2) memory", "nop", "signal c0 memory", "nop"}));
  EXPECT_EQ(ops(compiled.plan, 1), (Texts{"nop", "wait c0 memory", "nop"}));
}

TEST(Compile, instances_keep_local_numbers_and_share_every_chunk) {
  Program program(
      {.name = "p", .collective = TestCollective{.ranks = 3, .input = 2, .output = 2}, .instances = 2});
  MemoryChannel one(program, 1, 0), two(program, 2, 0), back(program, 0, 2);
  const BaseBuffer in = program.rank(0).get_input_buffer(), out = program.rank(2).get_output_buffer();
  two.put(out[1], in[1], 0);
  two.put(out[{0, 2}], in[{0, 2}], 0);
  one.signal(0, SyncType::none);
  MemoryChannel(program, 0, 1).wait(0, SyncType::none);
  const Plan recorded = program.recorded();
  EXPECT_EQ(recorded.gpus[0].threadblocks[0].channels_of(ChannelType::memory)->ids, (Ids{1, 0}));

  Compiled compiled = compile_unproved(program);
  ASSERT_EQ(found(compiled), "");
  const Gpu& gpu = compiled.plan.gpus[0];
  EXPECT_EQ(gpu.chunks[0], 4u);
  EXPECT_EQ(gpu.channels[0].connected_to, (Ids{1, 1, 2, 2}));
  ASSERT_EQ(gpu.threadblocks.size(), 2u);
  EXPECT_EQ(gpu.threadblocks[0].channels_of(ChannelType::memory)->ids, (Ids{2, 0}));
  EXPECT_EQ(gpu.threadblocks[1].channels_of(ChannelType::memory)->ids, (Ids{3, 1}));
  EXPECT_EQ(ops(compiled.plan, 0, 0),
            (Texts{"put i[2,3) > r0[2,3) memory", "put i[0,2) > r0[0,2) memory", "signal c1 memory"}));
  EXPECT_EQ(ops(compiled.plan, 0, 1),
            (Texts{"put i[3,4) > r0[3,4) memory", "put i[2,4) > r0[2,4) memory", "signal c1 memory"}));
}

TEST(Compile, operands_that_instances_share_apart_are_named) {
  // The second instance of one operation and the first instance of the other conflict.
  for (const int instances : {1, 2}) {
    Program program({.name = "p",
                     .collective = TestCollective{.ranks = 1, .input = 2, .output = 2},
                     .instances = instances});
    const Buffer scratch(program, 0, 2);
    const Rank me = program.rank(0);
    me.copy(scratch[1], me.get_input_buffer()[1], 0);
    me.copy(scratch[{0, 2}], me.get_input_buffer()[{0, 2}], 0);
    const std::string text = found(program.compile());
    EXPECT_EQ(text.empty(), instances == 1) << text;
    EXPECT_EQ(text.find("help: each instance takes an equal share of every operand, and of these two one "
                        "has 1 and one 2 chunks") == std::string::npos,
              instances == 1)
        << text;
  }
}

TEST(Compile, operands_that_instances_share_apart_have_two_names_in_place) {
  for (const bool same : {true, false}) {
    Program program({.name = "p",
                     .collective = AllReduce{.ranks = 1, .chunk_factor = 2, .inplace = true},
                     .instances = 2});
    const Buffer kept(program, 0, 2);
    const Rank me = program.rank(0);
    const BaseBuffer in = me.get_input_buffer(), all = same ? in : me.get_output_buffer();
    for (int chunk = 0; chunk < 2; ++chunk) me.copy(kept[chunk], in[chunk], 0);
    me.copy(all[{0, 2}], kept[{0, 2}], 0);
    for (int chunk = 0; chunk < 2; ++chunk) me.copy(in[chunk], kept[chunk], 0);
    const std::string text = found(program.compile());
    EXPECT_NE(text.find("each instance takes an equal share of every operand"), std::string::npos) << text;
    EXPECT_EQ(text.find("bug in the rewrite"), std::string::npos) << text;
  }
}

/// One joined operation makes and sends the sums. Its packets also say that it has read its inputs.
TEST(Compile, packets_of_a_joined_operation_tell_what_it_has_read) {
  for (const bool meet : {true, false}) {
    Program program({.name = "k",
                     .collective = TestCollective{.ranks = 2, .input = 1, .output = 1},
                     .protocol = Protocol::LL,
                     .auto_sync = false});
    const Buffer s0(program, 0, 2), s1(program, 1, 3);
    const Rank a(program, 0), b(program, 1);
    const MemoryChannel ab(program, 1, 0), ba(program, 0, 1);
    const auto in = a.get_input_buffer(), out = b.get_output_buffer();
    for (int turn = 0; turn < 2; ++turn) {
      ab.put(s1[0], in[0], 0);
      ab.signal(0);
      ba.wait(0);
      ab.put_packets(s1[1 + turn], in[0], 0);
      b.reduce(s1[0], {s1[1 + turn]}, 0, out[0], ReduceOp::sum, true);
      ba.put_packets(s0[turn], out[0], 0);
      a.unpack_packets(a.get_output_buffer()[0], s0[turn], 0);
      // Each thread knows only about the elements that it has unpacked, and puts others next.
      if (meet) a.barrier({0});
    }
    const Compiled compiled = program.compile();
    EXPECT_EQ(found(compiled).empty(), meet) << found(compiled);
    const Texts texts = ops(compiled.plan, 1);
    EXPECT_TRUE(std::any_of(texts.begin(), texts.end(),
                            [](const std::string& text) { return text.starts_with("respkt"); }));
  }
}

TEST(Compile, one_instance_where_replication_is_none) {
  Program program({.name = "p",
                   .collective = TestCollective{.ranks = 1, .input = 1, .output = 1},
                   .instances = 2,
                   .replication = ReplicationPolicy::none});
  const Rank rank = program.rank(0);
  rank.copy(rank.get_output_buffer()[0], rank.get_input_buffer()[0], 0);
  const Compiled compiled = program.compile();
  ASSERT_EQ(found(compiled), "");
  EXPECT_EQ(compiled.plan.gpus[0].threadblocks.size(), 1u);
  EXPECT_EQ(compiled.plan.gpus[0].chunks[0], 1u);
}

TEST(Compile, a_switch_operation_used_twice_moves_once) {
  Program program({.name = "p",
                   .collective = TestCollective{.ranks = 2, .input = 4, .output = 4},
                   .instances = 2,
                   .fuse = false});
  const SwitchChannel outputs(program, {0, 1}, BufferKind::output);
  const Chunk chunk = program.rank(0).get_input_buffer()[1];
  outputs.at_rank(0).broadcast(chunk, 1, 1, 0);
  outputs.at_rank(0).broadcast(chunk, 2, 1, 0);
  const Compiled compiled = compile_unproved(program);
  ASSERT_EQ(found(compiled), "");
  EXPECT_EQ(ops(compiled.plan, 0, 1),
            (Texts{"gstore i[3,4) > w0[3,4) switch", "gstore i[3,4) > w0[5,6) switch"}));
}

TEST(Compile, findings_of_the_checks_come_with_the_authors_line) {
  Program program = two_ranks();
  MemoryChannel there(program, 1, 0);
  const uint32_t line = __LINE__ + 1;
  there.signal(0);
  const Compiled compiled = program.compile();
  ASSERT_EQ(compiled.diagnostics.size(), 1u);
  const Diagnostic& one = compiled.diagnostics[0];
  EXPECT_EQ(one.check, "pairing");
  ASSERT_TRUE(one.at.has_value() || one.line.line == line);
  EXPECT_NE(found(compiled).find("compile_test.cpp:" + std::to_string(line) + ": error"), std::string::npos)
      << found(compiled);
}

}  // namespace
}  // namespace chorale::dsl
