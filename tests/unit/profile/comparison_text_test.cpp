// These tests check the output of --machine.

#include "tests/unit/profile/compared.hpp"
#include "tools/comparison.hpp"

namespace chorale {
namespace {

Machine named(const char* name) {
  Machine machine;
  machine.name = name;
  return machine;
}

std::string printed(const Plan& plan, const Comparison& comparison, tools::ProfiledCall call = {}) {
  call.arguments.bytes = traced_bytes;
  return tools::text_of(comparison, {plan, call, named("a GPU"), 20.5});
}

std::string printed(const Plan& plan, const Took& measured, const Took& predicted) {
  return printed(plan, compare_block(plan, measured, predicted));
}

TEST(ComparisonText, LinesGapsAndWaits) {
  Plan plan = exchange();
  std::vector<TraceSpan> ran, simulated;
  took(ran, plan, 0, 0, {{0, 10}, {1, 2}, {2, 95}}, 100);
  took(ran, plan, 1, 0, {{0, 97}, {1, 2}, {2, 3}}, 103);
  for (const uint32_t rank : {0u, 1u}) took(simulated, plan, rank, 0, {{0, 8}, {1, 3}, {2, 4}}, 0, 1);
  EXPECT_EQ(printed(plan, compare(plan, traced_bytes, ran, Clocks::one, simulated),
                    {.eager = true, .in_a_row_us = 41}),
            R"(compared with the prediction for a GPU: launch 3 of exchange, 8K bytes
  the launch: 107.00 us, predicted 15.00: 92.00 us more, 7.13 times as long
  a call of many in a row, launched one by one: 41.00 us, predicted 20.50: 20.50 us more, 2.00 times as long
us that a thread block is at a line, median and longest:
  gap us  median us  predicted  longest us  predicted  blocks  longest at       line     operation  kind
  +45.50      53.50       8.00       97.00       8.00       2  rank 1, block 0  a.cpp:1  put        work
   -1.00       2.00       3.00        2.00       3.00       2  rank 0, block 0  a.cpp:2  signal     work
  +45.00      49.00       4.00       95.00       4.00       2  rank 0, block 0  a.cpp:3  wait       waits
all us of a thread block, median: work 55.50, predicted 11.00; waits 49.00, predicted 4.00
the two largest gaps, in a median thread block, without waits:
  put a.cpp:1: 53.50 us, predicted 8.00: 45.50 us more, 6.69 times as long
  signal a.cpp:2: 2.00 us, predicted 3.00: 1.00 us less, 0.67 times as long
waits, in a median thread block: 49.00 us, predicted 4.00: 45.00 us more, 12.25 times as long
  the largest gap of them at wait a.cpp:3: 49.00 us, predicted 4.00: 45.00 us more, 12.25 times as long
  waits depend on other thread blocks, on signals in transit, and on ranks that began late, which is not predicted
)");
}

TEST(ComparisonText, SaysWhatIsCountedTogetherAndWhatIsAlone) {
  Plan plan = two_ranks();
  for (const uint32_t id : {0u, 1u}) add(block(plan), Opcode::signal, {}, {}, {id}, ChannelType::memory);
  add(block(plan), Opcode::nop);
  Op& pipeline = add(block(plan), Opcode::pipeline);
  pipeline.body = 1;
  add(block(plan), Opcode::copy, {in(0)}, {out(0)});
  add(block(plan), Opcode::unpack_packets, {scratch(0)}, {out(0)});
  add(block(plan), Opcode::reduce, {in(0), in(1)}, {out(0)});
  add(block(plan), Opcode::wait, {}, {}, {0}, ChannelType::memory);
  number_lines(plan);
  block(plan).ops[1].at = 1;
  EXPECT_EQ(printed(plan, {{0, 5}, {2, 20}, {4, 4}, {5, 3}, {6, 2}},
                    {{0, 2}, {1, 3}, {3, 10}, {4, 2}, {5, 6}, {7, 1}}),
            R"(compared with the prediction for a GPU: launch 3 of two, 8K bytes
  the launch: 34.00 us, predicted 24.00: 10.00 us more, 1.42 times as long
us that a thread block is at a line, median and longest:
  gap us  median us  predicted  longest us  predicted  blocks  longest at       line     operation       kind
  +10.00      20.00      10.00       20.00      10.00       1  rank 0, block 0  a.cpp:3  nop             turns    with pipeline a.cpp:4
   -3.00       3.00       6.00        3.00       6.00       1  rank 0, block 0  a.cpp:6  unpack_packets  packets
   +2.00       4.00       2.00        4.00       2.00       1  rank 0, block 0  a.cpp:5  copy            work
   +0.00       5.00       5.00        5.00       5.00       1  rank 0, block 0  a.cpp:1  signal          work
only measured, because these cost nothing in the prediction: reduce a.cpp:7 (2.00 us)
only predicted, without a span: wait a.cpp:8 (1.00 us)
all us of a thread block, median: work 11.00, predicted 7.00; packets 3.00, predicted 6.00; turns 20.00, predicted 10.00; waits 0.00, predicted 1.00
the three largest gaps, in a median thread block, without waits:
  nop a.cpp:3: 20.00 us, predicted 10.00: 10.00 us more, 2.00 times as long; all turns of a pipeline but the last, with their waits
  unpack_packets a.cpp:6: 3.00 us, predicted 6.00: 3.00 us less, 0.50 times as long; it may have waited for its packets
  copy a.cpp:5: 4.00 us, predicted 2.00: 2.00 us more, 2.00 times as long
)");
}

TEST(ComparisonText, WithoutGaps) {
  const Plan plan = exchange();
  EXPECT_EQ(printed(plan, {{0, 10}, {1, 2}, {2, 3}}, {{0, 10}, {1, 2}, {2, 3}}),
            R"(compared with the prediction for a GPU: launch 3 of exchange, 8K bytes
  the launch: 15.00 us, predicted 15.00: no gap
us that a thread block is at a line, median and longest:
  gap us  median us  predicted  longest us  predicted  blocks  longest at       line     operation  kind
   +0.00      10.00      10.00       10.00      10.00       1  rank 0, block 0  a.cpp:1  put        work
   +0.00       2.00       2.00        2.00       2.00       1  rank 0, block 0  a.cpp:2  signal     work
   +0.00       3.00       3.00        3.00       3.00       1  rank 0, block 0  a.cpp:3  wait       waits
all us of a thread block, median: work 12.00, predicted 12.00; waits 3.00, predicted 3.00
no gaps, without waits
waits, in a median thread block: 3.00 us, predicted 3.00: no gap
)");
}

TEST(ComparisonText, OfManyLinesHasTheLargestGaps) {
  Plan plan = two_ranks();
  for (uint32_t op = 0; op < 38; ++op)
    add(block(plan), op < 30 ? Opcode::copy : Opcode::reduce, {in(0)}, {out(0)});
  number_lines(plan);
  Took measured, predicted;
  for (uint32_t op = 0; op < 38; ++op) measured.push_back({op, 1 + op * 7 % 30});
  for (uint32_t op = 0; op < 30; ++op) predicted.push_back({op, 1});
  const std::string found = printed(plan, measured, predicted);
  EXPECT_NE(found.find("\n  and 10 lines more\n"), found.npos) << found;
  EXPECT_NE(found.find("reduce a.cpp:37 (13.00 us), 3 more lines\n"), found.npos) << found;
  EXPECT_NE(found.find("the three largest gaps"), found.npos) << found;
}

TEST(ComparisonText, OfAPlanThatCannotBePredicted) {
  Plan plan = exchange();
  block(plan, 0).ops.pop_back();  // a signal that no rank takes, so that the next launch finds it
  block(plan, 1).ops.erase(block(plan, 1).ops.begin() + 1);  // and a wait for it
  block(plan, 0).ops.erase(block(plan, 0).ops.begin() + 1);
  std::vector<TraceSpan> ran;
  took(ran, plan, 0, 0, {{0, 10}});
  Simulator simulator(plan);
  const tools::ProfiledCall call{.arguments = {.bytes = traced_bytes, .packet = PacketForm::ll16}};
  EXPECT_EQ(
      tools::text_beside_prediction(plan, call, ran, Clocks::one, simulator, named("a GPU")),
      "nothing is predicted for a GPU: plan 'exchange' does not end: chorale check says where it stops\n");
}

/// If simulate() takes the plan and machine, the prediction is for the same call.
TEST(ComparisonText, OfAPredictionBesideItself) {
  const Plan plan = exchange();
  Machine machine = named("a GPU");
#define CHORALE_NS(name, summary) machine.name##_ns = 100;
#define CHORALE_GB_S(name, summary) machine.name##_gb_s = 100;
#define CHORALE_COUNT(name, summary) machine.name = 100;
#include "chorale/machine.def"
  machine.enqueue_ns = 50000;
  for (const bool eager : {false, true}) {
    const Arguments arguments{.bytes = traced_bytes, .packet = PacketForm::ll16};
    const Simulation itself = simulate(plan, {.bytes = traced_bytes, .spans = true}, machine);
    Simulator simulator(plan);
    const std::string found = tools::text_beside_prediction(plan, {arguments, eager, itself.ns / 1e3},
                                                            itself.spans, Clocks::one, simulator, machine);
    EXPECT_NE(found.find("no gaps, without waits\n"), found.npos) << found;
    const std::string call = eager ? "launched one by one: 1.12 us, predicted 50.00: 48.88 us less"
                                   : "in a CUDA graph: 1.12 us, predicted 1.12: no gap";
    EXPECT_NE(found.find(call), found.npos) << found;
  }
}

}  // namespace
}  // namespace chorale
