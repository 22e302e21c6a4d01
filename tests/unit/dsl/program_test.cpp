// These tests check options, collectives, and the object itself.

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "chorale/json.hpp"
#include "helpers.hpp"

namespace chorale::dsl {
namespace {

/// Every rank sends all its data to all ranks as packets, and sums.
Program all_pairs(int ranks, std::string name) {
  Program program({.name = std::move(name),
                   .collective = AllReduce{.ranks = ranks, .chunk_factor = 1},
                   .protocol = Protocol::LL,
                   .instances = 2});
  std::vector<Buffer> scratch;
  for (int rank = 0; rank < ranks; ++rank) scratch.emplace_back(program, rank, ranks * ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const Rank self = program.rank(rank);
    const Chunk all = self.get_input_buffer()[{0, ranks}];
    std::vector<Chunk> others;
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == rank) continue;
      MemoryChannel(program, peer, rank)
          .put_packets(scratch[peer][{rank * ranks, (rank + 1) * ranks}], all, 0);
      others.push_back(scratch[rank][{peer * ranks, (peer + 1) * ranks}]);
    }
    self.reduce(all, others, 0, self.get_output_buffer()[{0, ranks}], ReduceOp::sum, true);
  }
  return program;
}

TEST(Program, options_go_to_the_plan_and_to_the_rewrites) {
  const Program program({.name = "n",
                         .collective = AllGather{.ranks = 4, .chunk_factor = 3, .inplace = true},
                         .protocol = Protocol::LL,
                         .instances = 5,
                         .fuse = false,
                         .auto_sync = false,
                         .replication = ReplicationPolicy::none,
                         .reuse_resources = true,
                         .threads_per_block = 512,
                         .use_double_scratch_buffer = true,
                         .buffer_alignment = 32,
                         .min_message_size = 1,
                         .max_message_size = uint64_t{1} << 40});
  EXPECT_EQ(texts(program), Texts{});
  const Plan plan = program.recorded();
  EXPECT_EQ(plan.name, "n");
  EXPECT_EQ(program.name(), "n");
  EXPECT_EQ(program.num_ranks(), 4);
  EXPECT_EQ(plan.collective, "allgather");
  EXPECT_EQ(plan.protocol, Protocol::LL);
  EXPECT_TRUE(plan.inplace && plan.reuse_resources && plan.use_double_scratch_buffer);
  EXPECT_EQ(plan.threads_per_block, 512u);
  EXPECT_EQ(plan.buffer_alignment, 32u);
  EXPECT_EQ(plan.min_message_size, 1u);
  EXPECT_EQ(plan.max_message_size, uint64_t{1} << 40);
  const CompileOptions options = program.compile_options();
  EXPECT_EQ(options.instances, 5u);
  EXPECT_FALSE(options.fuse || options.auto_sync);
  EXPECT_EQ(options.replication, ReplicationPolicy::none);
}

TEST(Program, bad_options) {
  const Collective good = AllReduce{.ranks = 2};
  const struct {
    ProgramOptions options;
    const char* text;
  } cases[] = {
      {{.name = "", .collective = good}, "the name of the program is empty, but plans are known by it"},
      {{.name = "n", .collective = good, .instances = 0}, "instances is 0, but must be 1 to 1024"},
      {{.name = "n", .collective = good, .instances = -1}, "instances is -1, but must be 1 to 1024"},
      {{.name = "n", .collective = good, .protocol = Protocol(7)},
       "protocol is 7, but must be one of Simple (0), LL (1)"},
      {{.name = "n", .collective = good, .replication = ReplicationPolicy(9)},
       "replication is 9, but must be one of interleaved (0), none (1)"},
      {{.name = "n", .collective = good, .target = Target(9)},
       "target is 9, but must be one of chorale (0), mscclpp (1)"},
      {{.name = "n", .collective = good, .threads_per_block = 0},
       "threads_per_block is 0, but must be 32 to 1024"},
      {{.name = "n", .collective = good, .threads_per_block = 100},
       "threads_per_block is 100, but must be a multiple of 32"},
      {{.name = "n", .collective = good, .threads_per_block = 4096},
       "threads_per_block is 4096, but must be 32 to 1024"},
      {{.name = "n", .collective = good, .buffer_alignment = 0},
       "buffer_alignment is 0, but must be 1 to 4294967296"},
      {{.name = "n", .collective = good, .buffer_alignment = 24},
       "buffer_alignment is 24, but must be a power of two"},
      {{.name = "n", .collective = good, .min_message_size = 8, .max_message_size = 4},
       "min_message_size is 8, which is above max_message_size 4"},
      {{.name = "n"}, "no collective is given, but it determines the numbers of ranks and chunks"},
      {{.name = "n", .collective = AllReduce{}}, "ranks of allreduce is 0, but must be 1 to 65536"},
      {{.name = "n", .collective = AllGather{.ranks = -3}},
       "ranks of allgather is -3, but must be 1 to 65536"},
      {{.name = "n", .collective = AllToAll{.ranks = 2, .chunk_factor = 0}},
       "chunk_factor of alltoall is 0, but must be 1 to 4294967296"},
      {{.name = "n", .collective = SendRecv{.ranks = 2, .chunk_factor = int64_t{1} << 33}},
       "chunk_factor of sendrecv is 8589934592, but must be 1 to 4294967296"},
      {{.name = "n", .collective = ReduceScatter{.ranks = 2, .chunk_factor = int64_t{1} << 32}},
       "the input of reducescatter has 2 times 4294967296 chunks, but at most 4294967296 fit"},
      {{.name = "n", .collective = Broadcast{.ranks = 2, .root = 2}}, "root is 2, but the ranks are 0 to 1"},
      {{.name = "n", .collective = Broadcast{.ranks = 2, .root = -1}},
       "root is -1, but the ranks are 0 to 1"},
      {{.name = "n", .collective = TestCollective{.ranks = 2, .input = -1, .output = 1}},
       "input of test is -1, but must be 0 to 4294967296"},
      {{.name = "n", .collective = Custom{.ranks = 2, .input = 1, .output = 1}},
       "custom has no post, but only post says what the output holds"},
  };
  for (const auto& wrong : cases) {
    const uint32_t line = __LINE__ + 1;
    Program program(wrong.options);
    ASSERT_EQ(texts(program), Texts{wrong.text});
    EXPECT_EQ(program.diagnostics()[0].line, (SourceLine{"program_test.cpp", line}));
    // Errors that follow from this one are not reported.
    if (program.num_ranks() == 0) {
      MemoryChannel channel(program, 7, 7);
      channel.put(program.rank(3).get_output_buffer()[9], Buffer(program, 5, -1)[2], -1);
      program.loop(0, 0, [&] { channel.signal(-1); });
      SwitchChannel(program, {9, 9}, BufferKind::input)
          .at_rank(1)
          .reduce(0, 0, {0, BufferKind::input, 0, 1}, 0);
      Semaphore(program, 3, -1).acquire(-1);
      EXPECT_EQ(program.diagnostics().size(), 1u);
    }
    EXPECT_FALSE(program.compile().ok());
  }
}

TEST(Collective, sizes_and_names) {
  const struct {
    Collective collective;
    const char* name;
    uint64_t input, output;
  } cases[] = {
      {AllGather{.ranks = 4, .chunk_factor = 2}, "allgather", 2, 8},
      {AllReduce{.ranks = 4, .chunk_factor = 2}, "allreduce", 8, 8},
      {ReduceScatter{.ranks = 4, .chunk_factor = 2}, "reducescatter", 8, 2},
      {AllToAll{.ranks = 4, .chunk_factor = 2}, "alltoall", 8, 8},
      {Broadcast{.ranks = 4, .root = 3, .chunk_factor = 2}, "broadcast", 2, 2},
      {SendRecv{.ranks = 4, .chunk_factor = 2}, "sendrecv", 2, 2},
      {TestCollective{.ranks = 4, .input = 5, .output = 0}, "test", 5, 0},
  };
  for (const auto& one : cases) {
    const Program program({.name = "n", .collective = one.collective});
    EXPECT_EQ(texts(program), Texts{}) << one.name;
    const Plan plan = program.recorded();
    EXPECT_EQ(plan.collective, one.name);
    ASSERT_EQ(plan.gpus.size(), 4u);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(plan.gpus[rank].id, rank);
      EXPECT_EQ(plan.gpus[rank].chunks[0], one.input) << one.name;
      EXPECT_EQ(plan.gpus[rank].chunks[1], one.output) << one.name;
    }
    EXPECT_EQ(plan.extension.root, plan.collective == "broadcast" ? 3u : 0u);
    EXPECT_EQ(plan.extension.input_segments, plan.collective == "test" ? 5u : 0u);
  }
}

TEST(Collective, custom_keeps_its_post_condition) {
  const Program program(
      {.name = "shift",
       .collective =
           Custom{.ranks = 3, .input = 1, .output = 2, .post = [](int64_t rank, int64_t chunk) {
                    if (chunk == 1) return std::vector<Contribution>{};
                    return std::vector<Contribution>{{uint32_t(rank + 2) % 3, 0}, {uint32_t(rank), 0}};
                  }}});
  EXPECT_EQ(texts(program), Texts{});
  const Extension extension = program.recorded().extension;
  EXPECT_EQ(extension.input_segments, 1u);
  EXPECT_EQ(extension.output_segments, 2u);
  ASSERT_EQ(extension.post.size(), 3u);
  EXPECT_EQ(extension.post[0][0], (std::vector<Contribution>{{2, 0}, {0, 0}}));
  EXPECT_TRUE(extension.post[0][1].empty());
}

TEST(Collective, custom_post_condition_is_checked) {
  const auto with = [](Contribution part) {
    return Program(
        {.name = "n",
         .collective = Custom{.ranks = 1, .input = 1, .output = 1, .post = [part](int64_t, int64_t) {
                                return std::vector<Contribution>{part};
                              }}});
  };
  EXPECT_EQ(texts(with({1, 0})),
            Texts{"post(0, 0) names input chunk 0 of rank 1, but each of 1 ranks has 1 input chunks"});
  EXPECT_EQ(texts(with({0, 1})),
            Texts{"post(0, 0) names input chunk 1 of rank 0, but each of 1 ranks has 1 input chunks"});
}

TEST(Program, lines_are_the_authors) {
  Program program = two_ranks();
  const uint32_t first = __LINE__ + 1;
  const MemoryChannel there(program, 2, 0);
  const Rank rank = program.rank(0);
  rank.copy(rank.get_output_buffer()[0], rank.get_input_buffer()[7], 0);
  rank.copy(rank.get_output_buffer()[0],  //
            rank.get_input_buffer()[{2, 9}], 0);
  rank.copy(rank.get_output_buffer()[0], rank.get_input_buffer()[0], 0);
  for (int time = 0; time < 2; ++time) {
    rank.copy(rank.get_output_buffer()[1], rank.get_input_buffer()[1], 0);
  }
  const Diagnostics found = program.diagnostics();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].line, (SourceLine{"program_test.cpp", first}));
  EXPECT_EQ(found[1].line, (SourceLine{"program_test.cpp", first + 2}));
  ASSERT_EQ(found[1].notes.size(), 2u);
  EXPECT_EQ(found[1].notes[1].line, (SourceLine{"program_test.cpp", first + 4}));

  const Plan plan = program.recorded();
  EXPECT_EQ(plan.source,
            (std::vector<SourceLine>{{"program_test.cpp", first + 5}, {"program_test.cpp", first + 7}}));
  const std::vector<Op>& recorded = plan.gpus[0].threadblocks[0].ops;
  ASSERT_EQ(recorded.size(), 3u);
  EXPECT_EQ(plan.line_of(recorded[0]).line, first + 5);
  EXPECT_EQ(plan.line_of(recorded[1]).line, first + 7);
  EXPECT_EQ(plan.line_of(recorded[2]).line, first + 7);
}

TEST(Program, lines_of_the_standard_library_are_not_named) {
  Program program = two_ranks();
  std::vector<MemoryChannel> peers;
  peers.emplace_back(program, 2, 0);
  peers.emplace_back(program, 0, 0);
  const uint32_t own = __LINE__ + 1;
  peers.push_back({program, 3, 0});
  const Diagnostics found = program.diagnostics();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].line, SourceLine{});
  ASSERT_EQ(found[0].notes.size(), 1u);
  EXPECT_TRUE(found[0].notes[0].text.starts_with("the line is not known, because the standard library"));
  EXPECT_EQ(found[1].line, SourceLine{});
  EXPECT_TRUE(found[1].notes.empty()) << "the note is told once";
  EXPECT_EQ(found[2].line, (SourceLine{"program_test.cpp", own}));
  EXPECT_TRUE(found[2].notes.empty());
}

TEST(Program, a_loop_that_the_standard_library_makes_has_no_line) {
  Program program = two_ranks();
  const MemoryChannel there(program, 1, 0);
  std::optional<LoopIterationContext> loop;
  loop.emplace(program, 16, 1);
  there.signal(0);
  const std::optional<LoopIterationContext> inner(std::in_place, program, 16, 1);
  const Texts expected = {"this loop is inside another loop, but loops do not nest",
                          "the plan is asked for inside this loop"};
  EXPECT_EQ(texts(program), expected);
}

TEST(Program, compiling_twice_gives_the_same_and_leaves_the_program_open) {
  Program program = all_pairs(4, "twice");
  const std::string recorded = write(program.recorded());
  const Compiled first = program.compile(), second = program.compile();
  EXPECT_TRUE(first.ok());
  EXPECT_EQ(write(first.plan), write(second.plan));
  EXPECT_EQ(write(program.recorded()), recorded);
  program.rank(0).barrier({0});
  EXPECT_NE(write(program.recorded()), recorded);
}

TEST(Program, findings_keep_the_plan_from_the_rewrites) {
  Program program = all_pairs(2, "wrong");
  program.rank(2);
  const Compiled compiled = program.compile();
  EXPECT_EQ(compiled.diagnostics.size(), 1u);
  EXPECT_EQ(write(compiled.plan), write(program.recorded()));
}

TEST(Program, moving_keeps_handles) {
  Program first = two_ranks();
  const MemoryChannel there(first, 1, 0);
  const Rank rank = first.rank(0);
  Program second = std::move(first);
  there.signal(0);
  rank.barrier({0});
  EXPECT_EQ(ops(second.recorded(), 0), (Texts{"signal c0 memory", "nop"}));
  EXPECT_THROW(first.recorded(), std::logic_error);  // NOLINT(bugprone-use-after-move)
  first = std::move(second);
  there.signal(0);
  EXPECT_EQ(ops(first.recorded(), 0).size(), 3u);
}

/// Handles of a destroyed program have no effect, and the new program reports their use.
TEST(Program, handles_of_a_program_that_was_assigned_to_are_refused) {
  Program program({.name = "old", .collective = TestCollective{.ranks = 2, .input = 4, .output = 4}});
  const Rank rank = program.rank(0);
  const MemoryChannel there(program, 1, 0);
  const Chunk in = rank.get_input_buffer()[0], out = rank.get_output_buffer()[0];
  for (const char* name : {"new", "newer"}) {
    program = Program({.name = name, .collective = TestCollective{.ranks = 2, .input = 4, .output = 4}});
    rank.copy(rank.get_output_buffer()[1], rank.get_input_buffer()[1], 0);
    there.signal(0);
    program.rank(0).copy(out, in, 0);
    EXPECT_EQ(texts(program),
              (Texts{"the rank is of program 'old', which program 'new' has been assigned to",
                     "the channel is of program 'old', which program 'new' has been assigned to",
                     std::string("the rank is of program '") + name + "', but dst is of 'old'"}));
    for (const Gpu& gpu : program.recorded().gpus) EXPECT_TRUE(gpu.threadblocks.empty());
  }
  program.rank(0).copy(program.rank(0).get_output_buffer()[0], program.rank(0).get_input_buffer()[0], 0);
  EXPECT_EQ(ops(program.recorded(), 0), Texts{"copy i[0,1) > o[0,1)"});
}

/// Without a finding the call would be lost silently, because the channel belongs to another program than the
/// one that is compiled.
TEST(Program, a_handle_of_another_program_is_found_in_both) {
  Program other({.name = "other", .collective = SendRecv{.ranks = 2}});
  Program program({.name = "f", .collective = SendRecv{.ranks = 2}});
  const MemoryChannel there(other, 1, 0);
  const uint32_t line = __LINE__ + 1;
  there.put(program.rank(1).get_output_buffer()[0], program.rank(0).get_input_buffer()[0], 0);
  for (const Program* const one : {&other, &program}) {
    EXPECT_EQ(texts(*one), Texts{"the channel is of program 'other', but dst is of 'f'"});
    EXPECT_EQ(one->diagnostics().at(0).line.line, line);
  }
  // When a program has been destroyed, nothing else is known about it.
  std::optional<Program> brief(two_ranks());
  const Chunk chunk = brief->rank(0).get_input_buffer()[0];
  brief.reset();
  Program last({.name = "last", .collective = SendRecv{.ranks = 2}});
  last.rank(0).copy(last.rank(0).get_output_buffer()[0], chunk, 0);
  EXPECT_EQ(texts(last), Texts{"the rank is of program 'last', but src is of a program that is gone"});
}

TEST(Program, several_at_once_on_several_threads) {
  const std::string expected = write(all_pairs(6, "p").recorded());
  std::vector<std::string> made(8);
  std::vector<std::thread> threads;
  for (std::string& plan : made)
    threads.emplace_back([&plan] { plan = write(all_pairs(6, "p").recorded()); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& plan : made) EXPECT_EQ(plan, expected);

  Program one = two_ranks(), other = two_ranks();  // and on one thread in alternation
  MemoryChannel in_one(one, 1, 0), in_other(other, 0, 1);
  in_one.signal(0);
  in_other.signal(2);
  EXPECT_EQ(one.recorded().gpus[0].threadblocks.size(), 1u);
  EXPECT_EQ(one.recorded().gpus[1].threadblocks.size(), 0u);
  EXPECT_EQ(other.recorded().gpus[1].threadblocks.size(), 3u);
}

}  // namespace
}  // namespace chorale::dsl
