#pragma once
// These are the litmus tests of docs/memory-model.md. Each is a tiny program and the memory model's statement
// about its result. A promised result holds in every schedule of the adversarial machine. Other results are
// wrong in some schedules and right in others. So the machine is weak enough that its confirmation of a
// promise is meaningful.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "chorale/adversary.hpp"
#include "chorale/dsl.hpp"

namespace chorale::litmus {

using namespace dsl;
using Kind = Verdict::Kind;

/// Chunk `chunk` of the output of `rank` must become chunk `from_chunk` of the input of `from`.
struct Result {
  uint32_t rank, chunk, from, from_chunk;
};

/// Returns a program that is compiled as it is written: no synchronisation is added, and no operations are
/// joined.
inline Program program_of(int64_t ranks, const std::vector<Result>& results, bool double_scratch = false) {
  const auto post = [results](int64_t rank, int64_t chunk) {
    std::vector<Contribution> from;
    for (const Result& result : results) {
      if (result.rank == rank && result.chunk == uint64_t(chunk))
        from.push_back({.rank = result.from, .chunk = result.from_chunk});
    }
    return from;
  };
  int64_t chunks = 1;
  for (const Result& result : results)
    chunks = std::max<int64_t>({chunks, result.chunk + 1, result.from_chunk + 1});
  return Program({.name = "litmus",
                  .collective = Custom{.ranks = ranks, .input = chunks, .output = chunks, .post = post},
                  .fuse = false,
                  .auto_sync = false,
                  .use_double_scratch_buffer = double_scratch});
}

/// Gives the result of a program in which rank 0 sends to rank 1.
inline const std::vector<Result> sent = {{1, 0, 0, 0}};

inline Chunk input(Program& program, int64_t rank, int64_t chunk = 0) {
  return program.rank(rank).get_input_buffer()[chunk];
}
inline Chunk output(Program& program, int64_t rank, int64_t chunk = 0) {
  return program.rank(rank).get_output_buffer()[chunk];
}

constexpr uint64_t schedules = 2000;

struct Counts {
  uint64_t right = 0, wrong = 0;
  Verdict first_wrong;
};

inline Counts count(const Program& program, uint32_t launches) {
  Counts counts;
  Adversary adversary(program.compile().plan, {.launches = launches});
  for (uint64_t seed = 0; seed < schedules; ++seed) {
    const Verdict verdict = adversary.run(seed);
    if (!verdict.ok() && counts.wrong == 0) counts.first_wrong = verdict;
    ++(verdict.ok() ? counts.right : counts.wrong);
  }
  return counts;
}

/// Expects that the result is right in every schedule.
inline void expect_promised(const Program& program, uint32_t launches = 1) {
  const Counts counts = count(program, launches);
  EXPECT_EQ(counts.wrong, 0u) << "seed " << counts.first_wrong.seed << ": " << counts.first_wrong.text;
}

/// Expects that the result is wrong in some schedules, in this way, and right in others.
inline void expect_not_promised(const Program& program, Kind kind = Kind::wrong_result,
                                uint32_t launches = 1) {
  const Counts counts = count(program, launches);
  EXPECT_GT(counts.right, 0u) << "no schedule is right: the program itself is wrong";
  ASSERT_GT(counts.wrong, 0u) << "no schedule is wrong: the machine is too strong";
  EXPECT_EQ(name(counts.first_wrong.kind), std::string(name(kind))) << counts.first_wrong.text;
}

}  // namespace chorale::litmus
