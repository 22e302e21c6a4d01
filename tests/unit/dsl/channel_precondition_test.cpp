// These tests break every precondition of channels with one call, and check its text.

#include "precondition.hpp"

namespace chorale::dsl {
namespace {

class ChannelPrecondition : public testing::TestWithParam<Case> {};

TEST_P(ChannelPrecondition, is_one_finding_and_nothing_recorded) {
  expect_one_finding(GetParam(), "channel_precondition_test.cpp");
}

const Case on_channels[] = {
    {"memory_dst_negative", [](Fixture& f) { MemoryChannel(f.program, -1, 0).signal(0); },
     "destination rank is -1, but the program's ranks are 0 to 1"},
    {"memory_src_past_end", [](Fixture& f) { MemoryChannel(f.program, 0, 2).put(f.o0[0], f.i1[0], 0); },
     "source rank is 2, but the program's ranks are 0 to 1"},
    {"memory_self", [](Fixture& f) { MemoryChannel(f.program, 1, 1).wait(0); },
     "the channel leads from rank 1 to rank 1, but needs two ranks"},
    {"port_self", [](Fixture& f) { PortChannel(f.program, 0, 0).flush(0); },
     "the channel leads from rank 0 to rank 0, but needs two ranks"},
    {"port_src_negative", [](Fixture& f) { PortChannel(f.program, 0, -7).flush(0); },
     "source rank is -7, but the program's ranks are 0 to 1"},
    {"signal_tb", [](Fixture& f) { f.memory.signal(-1); }, "thread block is -1, but must be 0 to 65535"},
    {"wait_tb", [](Fixture& f) { f.port.wait(70000); }, "thread block is 70000, but must be 0 to 65535"},
    {"put_src", [](Fixture& f) { f.memory.put(f.o1[0], f.i1[0], 0); },
     "src is on rank 1, but the source of this channel is rank 0"},
    {"put_dst", [](Fixture& f) { f.memory.put(f.o0[0], f.i0[0], 0); },
     "dst is on rank 0, but the destination of this channel is rank 1"},
    {"put_swapped", [](Fixture& f) { f.memory.put(f.i0[0], f.o1[0], 0); },
     "dst is on rank 0 and src is on rank 1, but the channel transfers from rank 0 to rank 1 here"},
    {"get_swapped", [](Fixture& f) { f.memory.get(f.i1[0], f.o0[0], 0); },
     "dst is on rank 1 and src is on rank 0, but the channel transfers from rank 1 to rank 0 here"},
    {"put_sizes",
     [](Fixture& f) {
       f.memory.put(f.o1[{0, 2}], f.i0[0], 0);
     },
     "dst is output[0:2] of rank 1, which is 2 chunks, but src is input[0:1] of rank 0, which is 1"},
    {"get_src", [](Fixture& f) { f.memory.get(f.o0[0], f.i0[0], 0); },
     "src is on rank 0, but the destination of this channel is rank 1"},
    {"get_dst", [](Fixture& f) { f.memory.get(f.o1[0], f.i1[0], 0); },
     "dst is on rank 1, but the source of this channel is rank 0"},
    {"get_sizes",
     [](Fixture& f) {
       f.memory.get(f.o0[0], f.i1[{0, 2}], 0);
     },
     "dst is output[0:1] of rank 0, which is 1 chunk, but src is input[0:2] of rank 1, which is 2"},
    {"put_packets_dst", [](Fixture& f) { f.memory.put_packets(f.o1[0], f.i0[0], 0); },
     "dst is in the output buffer, but packets are kept in scratch"},
    {"read_put_packets_src", [](Fixture& f) { f.memory.read_put_packets(f.s1[0], f.i0[0], 0); },
     "src is in the input buffer, but packets are kept in scratch"},
    {"read_put_packets_dst", [](Fixture& f) { f.memory.read_put_packets(f.i1[0], f.s0[0], 0); },
     "dst is in the input buffer, but packets are kept in scratch"},
    {"port_put_sizes",
     [](Fixture& f) {
       f.port.put_with_signal(f.o1[{0, 2}], f.i0[0], 0);
     },
     "dst is output[0:2] of rank 1, which is 2 chunks, but src is input[0:1] of rank 0, which is 1"},
    {"port_put_tb", [](Fixture& f) { f.port.put_with_signal_and_flush(f.o1[0], f.i0[0], -1); },
     "thread block is -1, but must be 0 to 65535"},
    {"port_put_packets_dst", [](Fixture& f) { f.port.put_packets(f.o1[0], f.i0[0], 0); },
     "dst is in the output buffer, but packets are kept in scratch"},
    {"port_read_put_packets_src", [](Fixture& f) { f.port.read_put_packets(f.s1[0], f.i0[0], 0); },
     "src is in the input buffer, but packets are kept in scratch"},
    {"reduce_empty", [](Fixture& f) { f.memory.reduce(f.i0[0], {}, 0); },
     "remote_srcs is empty, but local_src has to be combined with at least 1 chunk"},
    {"reduce_local_src", [](Fixture& f) { f.memory.reduce(f.i1[0], {f.i1[0]}, 0, f.i0[0]); },
     "local_src is on rank 1, but the source of this channel is rank 0"},
    {"reduce_local_dst", [](Fixture& f) { f.memory.reduce(f.i0[0], {f.i1[0]}, 0, f.o1[0]); },
     "local_dst is on rank 1, but the source of this channel is rank 0"},
    {"reduce_local_dst_size",
     [](Fixture& f) {
       f.memory.reduce(f.i0[0], {f.i1[0]}, 0, f.o0[{0, 3}]);
     },
     "local_dst is output[0:3] of rank 0, which is 3 chunks, but local_src is input[0:1] of rank 0, which is "
     "1"},
    {"reduce_remote",
     [](Fixture& f) {
       f.memory.reduce(f.i0[0], {f.i1[0], f.i0[1]}, 0);
     },
     "remote_srcs[1] is on rank 0, but the destination of this channel is rank 1"},
    {"reduce_remote_size",
     [](Fixture& f) {
       f.memory.reduce(f.i0[0], {f.i1[{0, 2}]}, 0);
     },
     "remote_srcs[0] is input[0:2] of rank 1, which is 2 chunks, but local_src is input[0:1] of rank 0, "
     "which is 1"},
    {"reduce_avg", [](Fixture& f) { f.memory.reduce(f.i0[0], {f.i1[0]}, 0, f.o0[0], ReduceOp::avg); },
     "reduce_op is avg, but an operation combines by sum, min, max or prod"},
};

const Case on_switches[] = {
    {"empty", [](Fixture& f) { SwitchChannel(f.program, {}, BufferKind::input); },
     "the rank list of the switch channel is empty, but needs at least 1 rank"},
    {"twice",
     [](Fixture& f) {
       SwitchChannel(f.program, {0, 1, 1}, BufferKind::input).at_rank(0);
     },
     "rank 1 is in the switch channel twice, at positions 1 and 2"},
    {"negative",
     [](Fixture& f) {
       SwitchChannel(f.program, {0, -1}, BufferKind::input);
     },
     "a rank of the switch channel is -1, but the program's ranks are 0 to 1"},
    {"no_member",
     [](Fixture& f) {
       SwitchChannel(f.program, {1}, BufferKind::input).at_rank(0).broadcast(f.i0[0], 0, 1, 0);
     },
     "rank 0 is not a member of this switch channel, whose ranks are 1"},
    {"no_member_explicit", [](Fixture& f) { f.inputs.broadcast(5, f.i0[0], 0, 1, 0); },
     "rank 5 is not a member of this switch channel, whose ranks are 0, 1"},
    {"src_of_another", [](Fixture& f) { f.inputs.at_rank(0).broadcast(f.i1[0], 0, 1, 0); },
     "src is on rank 1, but the rank of this call is rank 0"},
    {"dst_of_another", [](Fixture& f) { f.inputs.at_rank(1).reduce(0, 1, f.i0[0], 0); },
     "dst is on rank 0, but the rank of this call is rank 1"},
    {"size", [](Fixture& f) { f.inputs.at_rank(0).reduce(0, 2, f.o0[0], 0); },
     "dst has 1 chunk, but size is 2"},
    {"size_zero", [](Fixture& f) { f.inputs.at_rank(0).reduce(0, 0, f.o0[0], 0); },
     "size is 0, but must be 1 to 4294967296"},
    {"offset_negative", [](Fixture& f) { f.inputs.at_rank(0).broadcast(f.o0[0], -1, 1, 0); },
     "buffer_offset is -1, but must be 0 to 4294967296"},
    {"past_end",
     [](Fixture& f) {
       f.inputs.at_rank(0).broadcast(f.o0[{0, 2}], 3, 2, 0);
     },
     "the region is 2 chunks from chunk 3, but rank 0's input has 4"},
    {"past_scratch",
     [](Fixture& f) {
       Buffer(f.program, 0, 4);
       SwitchChannel(f.program, {0, 1}, BufferKind::scratch).at_rank(0).broadcast(f.o0[0], 6, 1, 0);
     },
     "the region is 1 chunk from chunk 6, but rank 1's scratch has 4"},
    {"avg", [](Fixture& f) { f.inputs.at_rank(0).reduce(0, 1, f.o0[0], 0, ReduceOp::avg); },
     "reduce_op is avg, but an operation combines by sum, min, max or prod"},
    {"tb", [](Fixture& f) { f.inputs.at_rank(0).reduce(0, 1, f.o0[0], -1); },
     "thread block is -1, but must be 0 to 65535"},
    {"packets_src",
     [](Fixture& f) {
       SwitchChannel(f.program, {0, 1}, BufferKind::scratch).at_rank(0).broadcast_packets(f.i0[0], 0, 1, 0);
     },
     "src is in the input buffer, but packets are kept in scratch"},
    {"packets_channel", [](Fixture& f) { f.inputs.at_rank(0).broadcast_packets(f.s0[0], 0, 1, 0); },
     "the switch channel is over the input buffers, but packets are kept in scratch"},
};

INSTANTIATE_TEST_SUITE_P(channel, ChannelPrecondition, testing::ValuesIn(on_channels), name_of);
INSTANTIATE_TEST_SUITE_P(switch_channel, ChannelPrecondition, testing::ValuesIn(on_switches), name_of);

/// Expects the help, and a note at the line where what was called is made.
void expect_remedy(const Diagnostic& found, const std::string& help, const std::string& note, uint32_t line) {
  EXPECT_EQ(found.help, help);
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_EQ(found.notes[0].text, note);
  EXPECT_EQ(found.notes[0].line.file, "channel_precondition_test.cpp");
  EXPECT_EQ(found.notes[0].line.line, line);
}

TEST(WrongRank, of_a_chunk_names_the_line_where_the_channel_is_made) {
  Program program = two_ranks();
  const Rank zero(program, 0), one(program, 1);
  const uint32_t made = __LINE__ + 1;
  const MemoryChannel channel(program, 1, 0);
  channel.put(zero.get_output_buffer()[0], zero.get_input_buffer()[0], 0);
  channel.put(zero.get_output_buffer()[0], one.get_input_buffer()[0], 0);
  channel.get(zero.get_output_buffer()[0], zero.get_input_buffer()[0], 0);
  const Diagnostics found = program.diagnostics();
  ASSERT_EQ(found.size(), 3u);
  expect_remedy(found[0], "take dst from a buffer of rank 1, or use a channel whose destination is rank 0",
                "the channel is made here", made);
  expect_remedy(
      found[1],
      "the destination comes first: swap the two, or those of the channel if it is to transfer from "
      "rank 1 to rank 0",
      "the channel is made here", made);
  expect_remedy(found[2], "take src from a buffer of rank 1, or use a channel whose destination is rank 0",
                "the channel is made here", made);
}

TEST(WrongRank, of_a_chunk_names_the_line_where_the_rank_is_made) {
  Program program = two_ranks();
  const uint32_t made = __LINE__ + 1;
  const Rank zero = program.rank(0);
  zero.copy(zero.get_output_buffer()[0], program.rank(1).get_input_buffer()[0], 0);
  program.rank(0).copy(program.rank(0).get_output_buffer()[0], program.rank(1).get_input_buffer()[0], 0);
  const Diagnostics found = program.diagnostics();
  ASSERT_EQ(found.size(), 2u);
  expect_remedy(found[0], "take src from a buffer of rank 0, or move the data by a channel to or from rank 1",
                "the rank is made here", made);
  EXPECT_TRUE(found[1].notes.empty());  // its line is that of the call
}

TEST(WrongRank, of_a_member_names_the_line_where_the_switch_channel_is_made) {
  Program program = two_ranks();
  const uint32_t made = __LINE__ + 1;
  const SwitchChannel joined(program, {1}, BufferKind::input);
  joined.at_rank(0);
  const Diagnostics found = program.diagnostics();
  ASSERT_EQ(found.size(), 1u);
  expect_remedy(found[0], "make the call for a member, or add rank 0 to the list of the switch channel",
                "the switch channel is made here", made);
}

TEST(WrongRank, that_the_program_lacks_says_how_ranks_count) {
  Program program = two_ranks();
  program.rank(2);
  MemoryChannel(program, 2, 0);
  Buffer(program, 2, 1);
  Semaphore(program, 2, 0);
  const SwitchChannel joined(program, {0, 2}, BufferKind::input);
  const Diagnostics found = program.diagnostics();
  ASSERT_EQ(found.size(), 5u);
  for (const Diagnostic& one : found)
    EXPECT_EQ(one.help, "ranks count from 0; the collective of this program has 2 ranks") << one.text;
  EXPECT_EQ(two_ranks().diagnostics().size(), 0u);
}

}  // namespace
}  // namespace chorale::dsl
