// These tests break every precondition of ranks, chunks and groups with one call, and check its text.

#include "precondition.hpp"

namespace chorale::dsl {
namespace {

class Precondition : public testing::TestWithParam<Case> {};

TEST_P(Precondition, is_one_finding_and_nothing_recorded) {
  expect_one_finding(GetParam(), "precondition_test.cpp");
}

Program& other_program() {
  static Program other = two_ranks();
  return other;
}

const Case on_ranks[] = {
    {"rank_negative", [](Fixture& f) { f.program.rank(-1).barrier({0}); },
     "rank is -1, but the program's ranks are 0 to 1"},
    {"rank_past_end", [](Fixture& f) { Rank(f.program, 5).copy(f.i0[0], f.o0[0], 0); },
     "rank is 5, but the program's ranks are 0 to 1"},
    {"rank_bad_buffers_are_silent",
     [](Fixture& f) {
       const Rank bad = f.program.rank(2);
       bad.copy(bad.get_output_buffer()[9], bad.get_input_buffer()[{3, 1}], -1);
     },
     "rank is 2, but the program's ranks are 0 to 1"},
    {"copy_dst_elsewhere", [](Fixture& f) { f.zero.copy(f.o1[0], f.i0[0], 0); },
     "dst is on rank 1, but the rank of this call is rank 0"},
    {"copy_src_elsewhere", [](Fixture& f) { f.one.copy(f.o1[0], f.i0[0], 0); },
     "src is on rank 0, but the rank of this call is rank 1"},
    {"copy_sizes",
     [](Fixture& f) {
       f.zero.copy(f.o0[{0, 2}], f.i0[{0, 3}], 0);
     },
     "dst is output[0:2] of rank 0, which is 2 chunks, but src is input[0:3] of rank 0, which is 3"},
    {"copy_other_program",
     [](Fixture& f) { f.zero.copy(f.o0[0], other_program().rank(0).get_input_buffer()[0], 0); },
     "the rank is of program 'two', but src is of another program of that name"},
    {"copy_packets_dst", [](Fixture& f) { f.zero.copy_packets(f.o0[0], f.i0[0], 0); },
     "dst is in the output buffer, but packets are kept in scratch",
     "copy() writes plain data to any buffer"},
    {"unpack_packets_src", [](Fixture& f) { f.zero.unpack_packets(f.o0[0], f.i0[0], 0); },
     "src is in the input buffer, but packets are kept in scratch",
     "copy() reads plain data from any buffer"},
    {"tb_negative", [](Fixture& f) { f.zero.copy(f.o0[0], f.i0[0], -1); },
     "thread block is -1, but must be 0 to 65535"},
    {"tb_too_high", [](Fixture& f) { f.zero.copy(f.o0[0], f.i0[0], 65536); },
     "thread block is 65536, but must be 0 to 65535"},
    {"reduce_nothing", [](Fixture& f) { f.zero.reduce(f.i0[0], {}, 0); },
     "others is empty, but src has to be combined with at least 1 chunk"},
    {"reduce_src_elsewhere", [](Fixture& f) { f.zero.reduce(f.i1[0], {f.i0[0]}, 0, f.o0[0]); },
     "src is on rank 1, but the rank of this call is rank 0"},
    {"reduce_other_elsewhere",
     [](Fixture& f) {
       f.zero.reduce(f.i0[0], {f.i0[1], f.i1[1]}, 0);
     },
     "others[1] is on rank 1, but the rank of this call is rank 0"},
    {"reduce_other_size",
     [](Fixture& f) {
       f.zero.reduce(f.i0[0], {f.i0[{1, 3}]}, 0);
     },
     "others[0] is input[1:3] of rank 0, which is 2 chunks, but src is input[0:1] of rank 0, which is 1"},
    {"reduce_dst_elsewhere", [](Fixture& f) { f.zero.reduce(f.i0[0], {f.i0[1]}, 0, f.i1[0]); },
     "dst is on rank 1, but the rank of this call is rank 0"},
    {"reduce_dst_size",
     [](Fixture& f) {
       f.zero.reduce(f.i0[0], {f.i0[1]}, 0, f.o0[{0, 2}]);
     },
     "dst is output[0:2] of rank 0, which is 2 chunks, but src is input[0:1] of rank 0, which is 1"},
    {"reduce_packet_not_scratch",
     [](Fixture& f) {
       f.zero.reduce(f.i0[0], {f.s0[0], f.o0[0]}, 0, f.o0[0], ReduceOp::sum, true);
     },
     "others[1] is in the output buffer, but packets are kept in scratch",
     "only src, the first operand, may be plain data"},
    {"reduce_avg", [](Fixture& f) { f.zero.reduce(f.i0[0], {f.i0[1]}, 0, f.o0[0], ReduceOp::avg); },
     "reduce_op is avg, but an operation combines by sum, min, max or prod"},
    {"reduce_op_unknown", [](Fixture& f) { f.zero.reduce(f.i0[0], {f.i0[1]}, 0, f.o0[0], ReduceOp(33)); },
     "reduce_op is 33, but must be one of sum (0), min (1), max (2), prod (3), avg (4)"},
    {"combine_nothing", [](Fixture& f) { f.zero.combine_packets(f.o0[0], {}, 0); },
     "packets is empty, but dst needs at least 1 chunk to be made of"},
    {"combine_dst_elsewhere", [](Fixture& f) { f.zero.combine_packets(f.o1[0], {f.s0[0]}, 0); },
     "dst is on rank 1, but the rank of this call is rank 0"},
    {"combine_packets_elsewhere",
     [](Fixture& f) {
       f.zero.combine_packets(f.o0[0], {f.s0[0], Buffer(f.program, 1, 1)[0]}, 0);
     },
     "packets[1] is on rank 1, but the rank of this call is rank 0"},
    {"combine_size",
     [](Fixture& f) {
       f.zero.combine_packets(f.o0[0], {f.s0[{0, 2}]}, 0);
     },
     "packets[0] is scratch[0:2] of rank 0, which is 2 chunks, but dst is output[0:1] of rank 0, which is 1"},
    {"combine_not_scratch",
     [](Fixture& f) {
       f.zero.combine_packets(f.o0[0], {f.s0[0], f.i0[0]}, 0);
     },
     "packets[1] is in the input buffer, but packets are kept in scratch",
     "reduce() with packet = true adds packets to plain data, its src"},
    {"combine_avg", [](Fixture& f) { f.zero.combine_packets(f.o0[0], {f.s0[0]}, 0, ReduceOp::avg); },
     "reduce_op is avg, but an operation combines by sum, min, max or prod"},
    {"combine_tb", [](Fixture& f) { f.zero.combine_packets(f.o0[0], {f.s0[0]}, -1); },
     "thread block is -1, but must be 0 to 65535"},
    {"barrier_empty", [](Fixture& f) { f.zero.barrier({}); },
     "the barrier has no thread blocks, but needs at least 1"},
    {"barrier_twice",
     [](Fixture& f) {
       f.zero.barrier({0, 1, 0});
     },
     "thread block 0 is in the barrier twice, at positions 0 and 2, but can arrive only once"},
    {"barrier_negative",
     [](Fixture& f) {
       f.zero.barrier({0, -2});
     },
     "thread block is -2, but must be 0 to 65535"},
    {"semaphore_rank", [](Fixture& f) { Semaphore(f.program, 2, 0).acquire(0); },
     "the rank of the semaphore is 2, but the program's ranks are 0 to 1"},
    {"semaphore_value", [](Fixture& f) { Semaphore(f.program, 0, -1).release(0); },
     "initial_value is -1, but must be 0 to 2147483647"},
    {"semaphore_sync", [](Fixture& f) { Semaphore(f.program, 0, 1).release(0, SyncType(77)); },
     "data_sync is 77, but must be one of none (0), before (1), after (2), both (3)"},
    {"signal_sync", [](Fixture& f) { f.memory.signal(0, SyncType(4)); },
     "data_sync is 4, but must be one of none (0), before (1), after (2), both (3)"},
    {"switch_buffer",
     [](Fixture& f) {
       SwitchChannel(f.program, {0, 1}, BufferType(9)).at_rank(0).broadcast(f.i0[0], 0, 1, 0);
     },
     "buffer_type is 9, but must be one of input (0), output (1), scratch (2)"},
    {"semaphore_tb", [](Fixture& f) { Semaphore(f.program, 0, 1).release(-1); },
     "thread block is -1, but must be 0 to 65535"},
};

const Case on_chunks[] = {
    {"slice_negative_start",
     [](Fixture& f) {
       f.zero.copy(f.o0[{-1, 1}], f.i0[0], 0);
     },
     "slice [-1, 1) of rank 0's output has a negative bound"},
    {"slice_negative_index", [](Fixture& f) { f.zero.copy(f.o0[-1], f.i0[0], 0); },
     "slice [-1, 0) of rank 0's output has a negative bound"},
    {"slice_reversed",
     [](Fixture& f) {
       f.zero.copy(f.o0[0], f.i0[{3, 1}], 0);
     },
     "slice [3, 1) of rank 0's input ends before it begins"},
    {"slice_empty",
     [](Fixture& f) {
       f.zero.copy(f.o0[0], f.i0[{2, 2}], 0);
     },
     "slice [2, 2) of rank 0's input is empty, but an operation needs at least 1 chunk"},
    {"slice_past_end", [](Fixture& f) { f.zero.copy(f.o0[0], f.i0.slice(3, 5), 0); },
     "slice [3, 5) of rank 0's input ends at chunk 5, but it has 4 chunks"},
    {"slice_scratch_past_end", [](Fixture& f) { f.zero.copy(f.o0[0], f.s0[4], 0); },
     "slice [4, 5) of rank 0's scratch ends at chunk 5, but it has 4 chunks"},
    {"made_past_end", [](Fixture& f) { f.zero.copy(Chunk(0, BufferKind::output, 100, 1), f.i0[0], 0); },
     "dst is 1 chunk from chunk 100, but rank 0's output has 4"},
    {"made_in_no_buffer", [](Fixture& f) { f.zero.copy(Chunk(0, BufferKind(9), 0, 1), f.i0[0], 0); },
     "the buffer of dst is 9, but must be one of input (0), output (1), scratch (2)"},
    {"made_huge",
     [](Fixture& f) { f.zero.copy(Chunk(0, BufferKind::output, INT64_MAX, INT64_MAX), f.i0[0], 0); },
     "dst is 9223372036854775807 chunks from chunk 9223372036854775807, but rank 0's output has 4"},
    {"made_empty", [](Fixture& f) { f.zero.copy(Chunk(0, BufferKind::output, 0, 0), f.i0[0], 0); },
     "dst has 0 chunks, but needs at least 1"},
    {"made_negative", [](Fixture& f) { f.zero.copy(Chunk(0, BufferKind::output, -1, 1), f.i0[0], 0); },
     "dst begins at chunk -1, but rank 0's output begins at 0"},
    {"made_on_no_rank", [](Fixture& f) { f.zero.copy(Chunk(7, BufferKind::output, 0, 1), f.i0[0], 0); },
     "the rank of dst is 7, but the program's ranks are 0 to 1"},
    {"buffer_rank", [](Fixture& f) { f.zero.copy(Buffer(f.program, -1, 2)[0], f.i0[0], 0); },
     "the rank of the buffer is -1, but the program's ranks are 0 to 1"},
    {"buffer_negative", [](Fixture& f) { f.zero.copy(Buffer(f.program, 0, -4)[9], f.i0[0], 0); },
     "the size of the buffer is -4, but must be 1 to 4294967296"},
    {"buffer_huge", [](Fixture& f) { Buffer(f.program, 0, int64_t{1} << 40); },
     "the size of the buffer is 1099511627776, but must be 1 to 4294967296"},
    {"buffers_huge", [](Fixture& f) { Buffer(f.program, 0, int64_t{1} << 32); },
     "rank 0 has 4 chunks of scratch, and 4294967296 more are above 4294967296"},
};

const Case on_groups[] = {
    {"group_empty", [](Fixture& f) { f.zero.copy(f.o0[0], f.i0[0], ThreadBlockGroup({})); },
     "the thread block group is empty, but at least 1 block has to run its operations"},
    {"group_twice",
     [](Fixture& f) {
       f.zero.copy(f.o0[0], f.i0[0], ThreadBlockGroup{1, 2, 1});
     },
     "thread block 1 is in the group twice, at positions 0 and 2"},
    {"group_negative",
     [](Fixture& f) {
       f.memory.put(f.o1[0], f.i0[0], ThreadBlockGroup{0, -3});
     },
     "thread block is -3, but must be 0 to 65535"},
    {"group_used_often",
     [](Fixture& f) {
       const ThreadBlockGroup group{1, 1};
       for (int chunk = 0; chunk < 4; ++chunk) f.zero.copy(f.o0[chunk], f.i0[chunk], group);
     },
     "thread block 1 is in the group twice, at positions 0 and 1"},
};

INSTANTIATE_TEST_SUITE_P(rank, Precondition, testing::ValuesIn(on_ranks), name_of);
INSTANTIATE_TEST_SUITE_P(chunk, Precondition, testing::ValuesIn(on_chunks), name_of);
INSTANTIATE_TEST_SUITE_P(group, Precondition, testing::ValuesIn(on_groups), name_of);

/// The arguments of Python have other names.
TEST(Preconditions, names_are_those_of_the_callers_language) {
  Fixture fixture;
  fixture.zero.reduce(fixture.i0[0], {}, 0, {}, ReduceOp::sum, false, {"mine.py", 7, true});
  fixture.zero.copy(fixture.o1[0], fixture.i0[0], 0, {"mine.py", 8, true});
  EXPECT_EQ(texts(fixture.program),
            (Texts{"other_chunks is empty, but src_chunk has to be combined with at least 1 chunk",
                   "dst_chunk is on rank 1, but the rank of this call is rank 0"}));
}

/// Slices that are past the end for one reason are one finding, which counts them.
TEST(Preconditions, slices_past_the_end_are_counted) {
  Fixture fixture;
  for (int64_t chunk = 4; chunk < 7; ++chunk) fixture.zero.copy(fixture.o0[0], fixture.i0[chunk], 0);
  const Diagnostics findings = fixture.program.diagnostics();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].text, "slice [4, 5) of rank 0's input ends at chunk 5, but it has 4 chunks");
  ASSERT_EQ(findings[0].notes.size(), 1u);
  EXPECT_EQ(findings[0].notes[0].text, "2 more slices end past an input");
  EXPECT_TRUE(findings[0].help.starts_with("correct the index, whose largest value is 3 here, or raise"))
      << findings[0].help;
}

TEST(Preconditions, all_of_a_call_and_of_a_program_are_found) {
  Fixture fixture;
  fixture.zero.copy(fixture.o1[0], fixture.i0[{0, 2}], -1);
  fixture.memory.signal(-2);
  fixture.memory.signal(0);
  EXPECT_EQ(
      texts(fixture.program),
      (Texts{"dst is on rank 1, but the rank of this call is rank 0",
             "dst is output[0:1] of rank 1, which is 1 chunk, but src is input[0:2] of rank 0, which is 2",
             "thread block is -1, but must be 0 to 65535", "thread block is -2, but must be 0 to 65535"}));
  EXPECT_EQ(ops(fixture.program.recorded(), 0), Texts{"signal c0 memory"});
}

TEST(Preconditions, gaps_between_blocks_are_bounded) {
  Program program = two_ranks();
  MemoryChannel channel(program, 1, 0);
  channel.signal(1024);
  EXPECT_EQ(texts(program), Texts{});
  EXPECT_EQ(program.recorded().gpus[0].threadblocks.size(), 1025u);
  channel.signal(60000);
  EXPECT_EQ(texts(program),
            Texts{"rank 0 uses thread block 60000 and leaves 59999 blocks below it empty, but at most "
                  "1024 may be"});
  EXPECT_EQ(program.recorded().gpus[0].threadblocks.size(), 2u);
}

TEST(Preconditions, a_group_is_reported_where_it_is_made) {
  Fixture fixture;
  const ThreadBlockGroup group{1, 1};
  const uint32_t made = __LINE__ - 1;
  fixture.zero.copy(fixture.o0[0], fixture.i0[0], group);
  const Diagnostic found = fixture.program.diagnostics().at(0);
  EXPECT_EQ(found.line.line, made);
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_EQ(found.notes[0].line.line, made + 2);
  EXPECT_EQ(found.notes[0].text, "used here");
}

}  // namespace
}  // namespace chorale::dsl
