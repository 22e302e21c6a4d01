// These tests check that loops become pipelines, by rank and block, completely or not at all.

#include <stdexcept>
#include <tuple>

#include "helpers.hpp"

namespace chorale::dsl {
namespace {

TEST(Loop, groups_by_rank_and_block_and_appends_at_the_end) {
  Program program = two_ranks();
  MemoryChannel there(program, 1, 0), back(program, 0, 1);
  const BaseBuffer in = program.rank(0).get_input_buffer(), out = program.rank(1).get_output_buffer();
  there.signal(0);
  program.loop(1024, 2, [&] {
    there.put(out[0], in[0], 0);
    back.wait(1);
    there.put(out[1], in[1], 1);
    there.signal(0);
  });
  there.wait(0);
  ASSERT_EQ(texts(program), Texts{});
  const Plan plan = program.recorded();
  EXPECT_EQ(ops(plan, 0, 0), (Texts{"signal c0 memory", "pipeline 1024x2 body 2",
                                    "put i[0,1) > r0[0,1) memory", "signal c0 memory", "wait c0 memory"}));
  EXPECT_EQ(ops(plan, 0, 1), (Texts{"pipeline 1024x2 body 1", "put i[1,2) > r0[1,2) memory"}));
  EXPECT_EQ(ops(plan, 1, 1), (Texts{"pipeline 1024x2 body 1", "wait c0 memory"}));
}

TEST(Loop, two_in_a_row_are_two_pipelines) {
  Program program = two_ranks();
  MemoryChannel there(program, 1, 0);
  for (int time = 0; time < 2; ++time) program.loop(16, 1, [&] { there.signal(0); });
  EXPECT_EQ(ops(program.recorded(), 0),
            (Texts{"pipeline 16x1 body 1", "signal c0 memory", "pipeline 16x1 body 1", "signal c0 memory"}));
}

TEST(Loop, nothing_recorded_is_no_pipeline) {
  Program program = two_ranks();
  program.loop(16, 1, [] {});
  EXPECT_TRUE(program.recorded().gpus[0].threadblocks.empty());
}

TEST(Loop, nested_is_refused_once_and_the_outer_one_stays) {
  Program program = two_ranks();
  MemoryChannel there(program, 1, 0);
  const uint32_t outer = __LINE__ + 1;
  program.loop(16, 1, [&] {
    there.signal(0);
    program.loop(16, 1, [&] { there.wait(0); });
    there.signal(0);
  });
  ASSERT_EQ(program.diagnostics().size(), 1u);
  EXPECT_EQ(program.diagnostics()[0].text, "this loop is inside the loop of loop_test.cpp:" +
                                               std::to_string(outer) + ", but loops do not nest");
  EXPECT_EQ(program.diagnostics()[0].line.line, outer + 2);
  EXPECT_EQ(ops(program.recorded(), 0),
            (Texts{"pipeline 16x1 body 2", "signal c0 memory", "signal c0 memory"}));
}

TEST(Loop, an_exception_records_nothing_and_ends_the_loop) {
  Program program = two_ranks();
  MemoryChannel there(program, 1, 0);
  EXPECT_THROW(program.loop(16, 1,
                            [&] {
                              there.signal(0);
                              throw std::runtime_error("mine");
                            }),
               std::runtime_error);
  EXPECT_TRUE(program.recorded().gpus[0].threadblocks.empty());
  there.signal(0);
  program.loop(16, 1, [&] { there.signal(0); });
  EXPECT_EQ(ops(program.recorded(), 0),
            (Texts{"signal c0 memory", "pipeline 16x1 body 1", "signal c0 memory"}));
  EXPECT_EQ(texts(program), Texts{});
}

TEST(Loop, as_a_scope) {
  Program program = two_ranks();
  MemoryChannel there(program, 1, 0);
  {
    LoopIterationContext loop(program, 32, 4);
    there.signal(0);
    EXPECT_EQ(texts(program), Texts{"the plan is asked for inside this loop"});
  }
  EXPECT_EQ(texts(program), Texts{});
  EXPECT_EQ(ops(program.recorded(), 0), (Texts{"pipeline 32x4 body 1", "signal c0 memory"}));
}

TEST(Loop, bad_bounds_are_refused_and_the_body_is_still_checked) {
  for (const auto& [unit, chunks, text] :
       {std::tuple{int64_t{0}, int64_t{1}, "unit_bytes is 0, but must be 1 to 4294967295"},
        std::tuple{int64_t{-16}, int64_t{1}, "unit_bytes is -16, but must be 1 to 4294967295"},
        std::tuple{int64_t{16}, int64_t{0}, "num_chunks is 0, but must be 1 to 4294967295"},
        std::tuple{int64_t{16}, int64_t{-1}, "num_chunks is -1, but must be 1 to 4294967295"}}) {
    Program program = two_ranks();
    MemoryChannel there(program, 1, 0);
    program.loop(unit, chunks, [&] {
      there.signal(0);
      there.signal(-1);
    });
    EXPECT_EQ(texts(program), (Texts{text, "thread block is -1, but must be 0 to 65535"}));
    EXPECT_TRUE(program.recorded().gpus[0].threadblocks.empty());
  }
}

}  // namespace
}  // namespace chorale::dsl
