// These tests check the output of --profile.

#include "tests/unit/profile/traced.hpp"
#include "tools/profile.hpp"

namespace chorale {
namespace {

std::string printed(const Plan& plan, const std::vector<TraceSpan>& spans, Clocks clocks = Clocks::one) {
  return tools::text_of(profile_of_spans(plan, spans, clocks), plan, traced_bytes, clocks);
}

TEST(ProfileText, LinesPathAndTotals) {
  const Plan plan = exchange();
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 0, {100, 110, 112, 207});
  ran(spans, plan, 1, 0, {103, 200, 202, 205});
  EXPECT_EQ(printed(plan, spans),
            R"(profile of exchange, 8K bytes, launch 3: 107.00 us
  path us  path %  spans  total us  longest us  at               line     operation
    97.00    90.7      2    107.00       97.00  rank 1, block 0  a.cpp:1  put
     5.00     4.7      2     98.00       95.00  rank 0, block 0  a.cpp:3  wait
     3.00     2.8      -         -        3.00  rank 1           -        (before the rank began)
     2.00     1.9      2      4.00        2.00  rank 0, block 0  a.cpp:2  signal
critical path, its stretches:
     us    from      to  at               line     operation
   3.00    0.00    3.00  rank 1           -        (before the rank began)
  97.00    3.00  100.00  rank 1, block 0  a.cpp:1  put
   2.00  100.00  102.00  rank 1, block 0  a.cpp:2  signal
   5.00  102.00  107.00  rank 0, block 0  a.cpp:3  wait                     after its release
all thread blocks, 209.00 us: 46.9% waiting, 51.2% moving data, 1.9% else
)");
}

TEST(ProfileText, OfGpusSaysWhomItWaitsFor) {
  const Plan plan = exchange();
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 0, {1000, 1010, 1012, 1107});
  ran(spans, plan, 1, 0, {3, 90, 92, 95});
  EXPECT_EQ(printed(plan, spans, Clocks::per_rank),
            R"(profile of exchange, 8K bytes, launch 3: 107.00 us on rank 0, which took longest
  path us  path %  spans  total us  longest us  at               line     operation
    95.00    88.8      2     98.00       95.00  rank 0, block 0  a.cpp:3  wait
    10.00     9.3      2     97.00       87.00  rank 1, block 0  a.cpp:1  put
     2.00     1.9      2      4.00        2.00  rank 0, block 0  a.cpp:2  signal
critical path, its stretches:
     us   from      to  at               line     operation
  10.00   0.00   10.00  rank 0, block 0  a.cpp:1  put
   2.00  10.00   12.00  rank 0, block 0  a.cpp:2  signal
  95.00  12.00  107.00  rank 0, block 0  a.cpp:3  wait       waiting for rank 1, a.cpp:2
all thread blocks, 199.00 us: 49.2% waiting, 48.7% moving data, 2.0% else
)");
}

TEST(ProfileText, OfManyLinesHasTheFirstAndTheLongest) {
  Plan plan = two_ranks();
  for (uint32_t op = 0; op < 30; ++op) add(block(plan), Opcode::copy, {in(0)}, {out(0)});
  number_lines(plan);
  std::vector<TraceSpan> spans;
  std::vector<uint64_t> times = {0};
  for (uint64_t op = 0; op < 30; ++op) times.push_back(times.back() + 1 + op * 7 % 30);
  ran(spans, plan, 0, 0, times);
  const std::string found = printed(plan, spans);
  EXPECT_NE(found.find("\n  and 10 lines with less\n"), found.npos) << found;
  EXPECT_NE(found.find("critical path, the 8 longest of its 30 stretches:\n"), found.npos) << found;
  size_t rows = 0;
  for (const char letter : found) rows += letter == '\n';
  EXPECT_EQ(rows, 1u + 1 + 20 + 1 + 1 + 1 + 8 + 1);
}

TEST(ProfileText, OfNothing) {
  EXPECT_EQ(printed(exchange(), {}), "profile of exchange, 8K bytes: nothing was traced\n");
}

TEST(ProfileText, SaysWhatIsNotKnown) {
  Plan plan = two_ranks();  // without lines
  add_blocks(plan, 3);
  for (const uint32_t on : {0u, 1u}) add(block(plan, 0, on), Opcode::sem_release, {}, {}, {0});
  for (int turn = 0; turn < 2; ++turn) add(block(plan, 0, 2), Opcode::sem_acquire, {}, {}, {0});
  std::vector<TraceSpan> spans;
  ran(spans, plan, 0, 2, {0, 30, 31});
  const std::string found = printed(plan, spans);
  const std::string row =
      "  31.00  0.00  31.00  rank 0, block 2  -     sem_acquire  who released it is not known\n";
  EXPECT_NE(found.find(row), found.npos) << found;
}

}  // namespace
}  // namespace chorale
