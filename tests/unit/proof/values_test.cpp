// These tests have outputs that differ from what their collective promises, and check the messages, addend by
// addend.

#include <utility>

#include "chorale/witness.hpp"
#include "tests/has.hpp"
#include "tests/unit/proof/findings.hpp"

namespace chorale {
namespace {

std::string values(const Plan& plan) { return found("values", plan); }

/// Returns a plan of two ranks with `in` and `out` chunks.
Plan collective(const char* name, uint64_t in, uint64_t out) {
  Plan plan = two_ranks();
  plan.collective = name;
  for (Gpu& gpu : plan.gpus) {
    gpu.chunks[0] = in;
    gpu.chunks[1] = out;
  }
  return plan;
}

/// Every rank puts its input into the peer's scratch, and adds what it receives.
Plan all_reduce() {
  Plan plan = collective("allreduce", 2, 2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(plan, rank), Opcode::put, {in(0, 2)}, {at(2, 0, 2)}, {}, ChannelType::memory);
    control(plan, Opcode::signal, 0, rank);
    control(plan, Opcode::wait, 0, rank);
    for (uint64_t chunk = 0; chunk < 2; ++chunk)
      add(block(plan, rank), Opcode::reduce, {in(chunk), scratch(chunk)}, {out(chunk)});
  }
  return plan;
}

Operand& operand(Plan& plan, uint32_t rank, uint32_t op, uint32_t position) {
  ThreadBlock& of = block(plan, rank);
  return of.operands[of.ops[op].first_operand + position];
}

/// Returns all_reduce() with encoded transfers, which has two codecs.
Plan coded_all_reduce(const Operand& sent, const Operand& read) {
  Plan plan = collective("allreduce", 1, 1);
  plan.extension.codecs = {{CodecFormat::fp8_e4m3, 128}, {CodecFormat::int8, 64}};
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(plan, rank), Opcode::put, {in(0)}, {sent}, {}, ChannelType::memory);
    control(plan, Opcode::signal, 0, rank);
    control(plan, Opcode::wait, 0, rank);
    add(block(plan, rank), Opcode::reduce, {in(0), read}, {out(0)});
  }
  return plan;
}

/// The proof accepts a read only by the codec of the write.
TEST(Values, CodecsOfWritesAndReads) {
  EXPECT_EQ(values(coded_all_reduce(coded(at(2, 0)), coded(scratch(0)))), "");
  const std::string reads = "this reads scratch[0:1] of rank 0 as ",
                    written = "  it is written here at 1.0.0\n";
  EXPECT_TRUE(
      test::has(values(coded_all_reduce(coded(at(2, 0)), scratch(0))),
                reads + "plain elements, but it holds fp8_e4m3 in blocks of 128 at 0.0.3\n" + written));
  EXPECT_TRUE(
      test::has(values(coded_all_reduce(at(2, 0), coded(scratch(0)))),
                reads + "fp8_e4m3 in blocks of 128, but it holds plain elements at 0.0.3\n" + written));
  EXPECT_TRUE(
      test::has(values(coded_all_reduce(coded(at(2, 0)), coded(scratch(0), 1))),
                reads + "int8 in blocks of 64, but it holds fp8_e4m3 in blocks of 128 at 0.0.3\n" + written));
}

/// A copy within a place is one that encodes, if the codecs differ.
TEST(Values, EncodingInPlace) {
  Plan plan = collective("allgather", 1, 2);
  plan.extension.codecs = {{CodecFormat::fp8_e4m3, 128}};
  copy(plan, scratch(0), coded(scratch(0)));
  nop(plan);
  copy(plan, scratch(0), out(0));
  EXPECT_TRUE(test::has(values(plan), "this reads scratch[0:1] of rank 0 as plain elements")) << values(plan);
}

/// A plan in place may leave out the output, which is then the input.
TEST(Values, OutputThatIsLeftOut) {
  Plan plan = collective("allreduce", 2, 0);
  plan.inplace = true;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(plan, rank), Opcode::put, {in(0, 2)}, {at(2, 0, 2)}, {}, ChannelType::memory);
    control(plan, Opcode::signal, 0, rank);
    control(plan, Opcode::wait, 0, rank);
    add(block(plan, rank), Opcode::reduce, {in(0, 2), scratch(0, 2)}, {in(0, 2)});
  }
  EXPECT_EQ(values(plan), "");
  block(plan, 0).ops.pop_back();
  EXPECT_EQ(values(plan),
            "output[0:2] of rank 0 is never written\n"
            "  2 chunks are never written: output[0:2] of rank 0\n");
}

/// Broadcasts the input of rank 0. Rank 0 copies it to its own output, with the operands of `copy`.
Plan broadcast(const Operand& from, const Operand& to) {
  Plan plan = collective("broadcast", 1, 1);
  plan.gpus[1].chunks[0] = 0;
  put(plan, in(0), 1, 0);
  nop(plan);
  copy(plan, from, to);
  return plan;
}

/// A copy whose operands are swapped leaves its output unwritten. The finding names the copy.
TEST(Values, OperandsThatAreSwapped) {
  EXPECT_EQ(values(broadcast(in(0), out(0))), "");
  const Plan swapped = broadcast(out(0), in(0));
  EXPECT_EQ(
      values(swapped),
      "output[0:1] of rank 0 is never written\n"
      "  this copy reads output[0:1] of rank 0 before anything writes it, and overwrites data at 0.0.2\n");
  EXPECT_EQ(prove_plan(swapped, all_but("values")).findings[0].diagnostic.help,
            "did you mean to swap the operands of that copy? The destination comes first");
  // The copy may also read data that a later copy takes to an output.
  Plan onwards = collective("allgather", 1, 2);
  copy(onwards, scratch(0), in(0));
  nop(onwards);
  copy(onwards, scratch(0), out(0));
  EXPECT_TRUE(test::has(values(onwards), "this copy reads scratch[0:1] of rank 0")) << values(onwards);
  // A copy of something unwritten to a place without data is not swapped.
  EXPECT_FALSE(test::has(values(broadcast(scratch(0), out(0))), "this copy reads"));
}

/// Rank 0 adds its input to itself, and the sum to itself, `times` times.
Plan doubled(uint32_t times) {
  Plan plan = collective("allreduce", 1, 1);
  add(block(plan), Opcode::reduce, {in(0), in(0)}, {out(0)});
  for (uint32_t time = 1; time < times; ++time)
    add(block(plan), Opcode::nop), add(block(plan), Opcode::reduce, {out(0), out(0)}, {out(0)});
  return plan;
}

/// Each addend is counted, and none of them is listed.
TEST(Values, AddendsWithoutNumber) {
  EXPECT_EQ(
      values(doubled(40)).substr(0, 130),
      "output[0:1] of rank 0 does not hold what it should: it has input[0:1] of rank 0 1099511627776 times, "
      "it lacks input[0:1] of rank 1");
  EXPECT_NE(values(doubled(70)).find("input[0:1] of rank 0 18446744073709551615 times or more, it lacks"),
            std::string::npos);
  const Plan plan = doubled(40);
  const Finding finding = prove_plan(plan).findings.at(0);
  ASSERT_EQ(finding.held.size(), 1u);
  EXPECT_EQ(finding.held[0].times, uint64_t{1} << 40);
  const Witness witness = explain(plan, finding);
  const std::string four =
      "input[0:1] of rank 0, input[0:1] of rank 0, input[0:1] of rank 0, input[0:1] of rank 0";
  EXPECT_EQ(witness.because.at(0), "it should hold input[0:1] of rank 0, input[0:1] of rank 1");
  EXPECT_EQ(witness.because.at(1), "it holds " + four + " and 1099511627772 more");
}

TEST(Values, AllReduce) {
  EXPECT_EQ(values(all_reduce()), "");
  Plan plan = all_reduce();
  operand(plan, 1, 4, 1) = in(1);
  EXPECT_EQ(values(plan),
            "output[1:2] of rank 1 does not hold what it should: it has input[1:2] of rank 1 twice, it lacks "
            "input[1:2] of rank 0 at 1.0.4\n");
  plan = all_reduce();
  operand(plan, 0, 3, 1) = scratch(1);
  EXPECT_EQ(
      values(plan),
      "output[0:1] of rank 0 does not hold what it should: it has input[1:2] of rank 1, which does not "
      "belong there, it lacks input[0:1] of rank 1; this reads scratch[1:2] of rank 0, but what belongs "
      "there is in scratch[0:1] of rank 0 at 0.0.3\n"
      "  it is written here at 1.0.0\n");
  plan = all_reduce();
  operand(plan, 0, 3, 1) = scratch(5);
  EXPECT_EQ(values(plan),
            "output[0:1] of rank 0 does not hold what it should: it has what scratch[5:6] of rank 0 held "
            "before the launch, which does not belong there, it lacks input[0:1] of rank 1; this reads "
            "scratch[5:6] of rank 0, but what belongs there is in scratch[0:1] of rank 0 at 0.0.3\n"
            "  it is written here at 1.0.0\n");
  plan = all_reduce();
  block(plan, 0).ops.pop_back();
  EXPECT_EQ(values(plan), "output[1:2] of rank 0 is never written: this comes nearest to it at 0.0.3\n");
}

TEST(Values, TheOrderOfAddendsAndTheOperatorDoNotMatter) {
  Plan plan = all_reduce();
  std::swap(operand(plan, 0, 3, 0), operand(plan, 0, 3, 1));
  EXPECT_EQ(values(plan), "");
  for (uint32_t rank = 0; rank < 2; ++rank) {
    for (Op& op : block(plan, rank).ops) op.reduce_op = ReduceOp::max;
  }
  EXPECT_EQ(values(plan), "");
}

TEST(Values, OutputsOfSeveralOperators) {
  Plan plan = all_reduce();
  block(plan, 1).ops[4].reduce_op = ReduceOp::max;
  EXPECT_EQ(
      values(plan),
      "output[1:2] of rank 1 is made with the operator max, but output[0:1] of rank 0 with sum at 1.0.4\n");
}

TEST(Values, SeveralOperators) {
  Plan plan = all_reduce();
  add(block(plan), Opcode::reduce, {scratch(0), scratch(1)}, {scratch(2)});
  add(block(plan), Opcode::reduce, {in(0), scratch(2)}, {out(0)}).reduce_op = ReduceOp::max;
  EXPECT_EQ(values(plan), "output[0:1] of rank 0 is made with several reduction operators at 0.0.6\n");
}

TEST(Values, InPlaceInputIsOverwritten) {
  Plan plan = all_reduce();
  plan.inplace = true;
  EXPECT_EQ(values(plan), "");
  // In place the second addition finds the result of the first.
  for (uint32_t rank = 0; rank < 2; ++rank)
    add(block(plan, rank), Opcode::reduce, {in(0), scratch(0)}, {out(0)});
  EXPECT_EQ(
      values(plan),
      "output[0:1] of rank 0 does not hold what it should: it has input[0:1] of rank 1 twice at 0.0.5\n"
      "  2 chunks are wrong: output[0:1] of rank 0, output[0:1] of rank 1\n"
      "output[0:1] of rank 1 does not hold what it should: it has input[0:1] of rank 0 twice at 1.0.5\n");
  plan.inplace = false;
  EXPECT_EQ(values(plan), "");
}

/// All ranks of a program leave out the same part.
TEST(Values, LeftOutByAllRanks) {
  Plan plan = collective("alltoall", 4, 4);
  plan.source = {{"all.cpp", 3}};
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(plan, rank), Opcode::copy, {in(2 * rank)}, {out(2 * rank)}).at = 1;
    EXPECT_EQ(
        values(plan),
        rank ? "output[1:2] of rank 0 is never written: this comes nearest to it at 0.0.0\n"
               "  6 chunks are never written: output[1:4] of rank 0, output[0:2], output[3:4] of rank 1\n"
             : "output[1:2] of rank 0 is never written: this comes nearest to it at 0.0.0\n"
               "  7 chunks are never written: output[1:4] of rank 0, output[0:4] of rank 1\n"
               "output[0:1] of rank 1 is never written\n");
  }
}

TEST(Values, OthersOfTheirOwnKind) {
  // Each rank copies to itself what it would receive if it were alone.
  const auto of = [](const char* name, uint64_t ins, uint64_t outs) {
    Plan plan = collective(name, ins, outs);
    for (uint32_t rank = 0; rank < 2; ++rank) {
      const uint64_t n = std::min(ins, outs);
      add(block(plan, rank), Opcode::copy, {in(0, n)}, {out(0, n)});
    }
    return values(plan);
  };
  EXPECT_EQ(of("allgather", 1, 2),
            "output[1:2] of rank 1 is never written: this writes what belongs there to output[0:1] of rank 1 "
            "at 1.0.0\n"
            "  2 chunks are never written: output[1:2] of rank 0, output[1:2] of rank 1; 1 chunk is wrong: "
            "output[0:1] of rank 1\n");
  EXPECT_EQ(of("alltoall", 2, 2),
            "output[1:2] of rank 0 does not hold what it should: it has input[1:2] of rank 0, which does not "
            "belong there, it lacks input[0:1] of rank 1 at 0.0.0\n"
            "  2 chunks are wrong: output[1:2] of rank 0, output[0:1] of rank 1\n"
            "output[0:1] of rank 1 does not hold what it should: it has input[0:1] of rank 1, which does not "
            "belong there, it lacks input[1:2] of rank 0 at 1.0.0\n");
  EXPECT_EQ(of("broadcast", 1, 1),
            "output[0:1] of rank 1 does not hold what it should: it has input[0:1] of rank 1, which does not "
            "belong there, it lacks input[0:1] of rank 0 at 1.0.0\n");
  EXPECT_EQ(of("reducescatter", 2, 1),
            "output[0:1] of rank 0 does not hold what it should: it lacks input[0:1] of rank 1 at 0.0.0\n"
            "  2 chunks are wrong: output[0:1] of rank 0, output[0:1] of rank 1\n"
            "output[0:1] of rank 1 does not hold what it should: it has input[0:1] of rank 1, which does not "
            "belong there, it lacks input[1:2] of rank 0, it lacks input[1:2] of rank 1 at 1.0.0\n");
  EXPECT_EQ(of("sendrecv", 2, 2), "");
  EXPECT_EQ(of("test", 2, 1), "");
}

/// Rank 0 puts its input to rank 1 and both copy their own. Rank 0 lacks the input of rank 1, which
/// `put_input` puts somewhere.
Plan gather_with(void (*put_input)(Plan&)) {
  Plan plan = collective("allgather", 1, 2);
  for (uint32_t rank = 0; rank < 2; ++rank) copy(plan, in(0), out(rank), 0, rank);
  put(plan, in(0), 1, 0);
  put_input(plan);
  return plan;
}

/// A finding is at the operation that writes elsewhere what belongs to an output, and not at the nearest one.
TEST(Values, TheOperationAtFault) {
  EXPECT_EQ(values(gather_with([](Plan& plan) { put(plan, in(0), 1, 1, 1); })), "");
  EXPECT_EQ(values(gather_with([](Plan&) {})),
            "output[1:2] of rank 0 is never written: this comes nearest to it at 0.0.0\n");
  EXPECT_EQ(
      values(gather_with([](Plan& plan) { put(plan, in(0), 2, 3, 1); })),
      "output[1:2] of rank 0 is never written: this writes what belongs there to scratch[3:4] of rank 0, "
      "and nothing copies it from there to the output at 1.0.1\n");
  EXPECT_EQ(
      values(gather_with([](Plan& plan) {
        nop(plan, 1);
        copy(plan, in(0), out(1), 0, 1);
      })),
      "output[1:2] of rank 0 is never written: this writes what belongs there to output[1:2] of rank 1, "
      "which holds it already at 1.0.2\n");
  EXPECT_EQ(values(gather_with([](Plan& plan) { copy(plan, in(0), out(0), 0, 1); })),
            "output[0:1] of rank 1 does not hold what it should: it has input[0:1] of rank 1, which does not "
            "belong there, it lacks input[0:1] of rank 0 at 1.0.1\n"
            "  1 chunk is never written: output[1:2] of rank 0; 1 chunk is wrong: output[0:1] of rank 1\n");
}

/// Rank 1 forwards what it finds where it should have its own input, so that rank 0 gets something wrong.
TEST(Values, ForwardingIsRight) {
  const auto forwards = [](const Operand& own) {
    Plan plan = collective("allgather", 1, 2);
    copy(plan, in(0), out(0));
    put(plan, in(0), 1, 0);
    hand_over(plan, 0);
    copy(plan, in(0), own, 0, 1);
    nop(plan, 1);
    put(plan, out(1), 1, 1, 1);
    return plan;
  };
  EXPECT_EQ(values(forwards(out(1))), "");
  // The copy overwrites what rank 0 has put, and the put finds nothing.
  EXPECT_EQ(
      values(forwards(out(0))),
      "output[1:2] of rank 1 is never written: this writes what belongs there to output[0:1] of rank 1 at "
      "1.0.1\n"
      "  1 chunk is never written: output[1:2] of rank 1; 2 chunks are wrong: output[1:2] of rank 0, "
      "output[0:1] of rank 1\n");
  // A wrong copy to the right place is at fault, too.
  Plan plan = forwards(out(1));
  operand(plan, 1, 1, 0) = scratch(0);
  EXPECT_EQ(
      values(plan),
      "output[1:2] of rank 0 does not hold what it should: it has what scratch[0:1] of rank 1 held "
      "before the launch, which does not belong there, it lacks input[0:1] of rank 1; what is there "
      "instead comes from output[1:2] of rank 1, where this writes it; this reads scratch[0:1] of rank 1, "
      "which nothing has written at 1.0.1\n"
      "  2 chunks are wrong: output[1:2] of rank 0, output[1:2] of rank 1\n");
}

TEST(Values, SomebodyReceives) {
  Plan plan = collective("sendrecv", 1, 1);
  hand_over(plan, 0);
  add(block(plan), Opcode::copy, {in(0)}, {scratch(0)});
  EXPECT_EQ(values(plan),
            "no rank receives anything: no operation writes any of the 2 outputs of this sendrecv\n");
  add(block(plan), Opcode::copy, {in(0)}, {out(0)});
  EXPECT_EQ(values(plan), "");
  // In place an input is an output.
  plan.inplace = true;
  for (Gpu& gpu : plan.gpus) gpu.threadblocks[0].ops.clear();
  EXPECT_NE(values(plan), "");
  add(block(plan), Opcode::put, {in(0)}, {at(0, 0)}, {}, ChannelType::memory);
  EXPECT_EQ(values(plan), "");
}

TEST(Values, AuthorsOwn) {
  Plan plan = collective("custom", 2, 1);
  plan.extension.post = {{{{0, 0}, {0, 1}}}, {{{0, 1}}}};
  add(block(plan), Opcode::reduce, {in(0), in(1)}, {out(0)});
  add(block(plan), Opcode::put, {in(1)}, {at(1, 0)}, {}, ChannelType::memory);
  EXPECT_EQ(values(plan), "");
  operand(plan, 0, 1, 0) = in(0);
  EXPECT_EQ(values(plan),
            "output[0:1] of rank 1 does not hold what it should: it has input[0:1] of rank 0, which does not "
            "belong there, it lacks input[1:2] of rank 0 at 0.0.1\n");
}

TEST(Values, GroupsAndPipelinesCoverTheirOperands) {
  Plan plan = collective("broadcast", 3, 3);
  for (uint32_t member = 0; member < 2; ++member) {
    Op& op = add(block(plan, 0, member), Opcode::put, {in(0, 3)}, {at(1, 0, 3)}, {}, ChannelType::memory);
    op.group_index = member;
    op.group_size = 2;
    Op& loop = append(block(plan, 1, member), Opcode::pipeline, {}, {});
    loop.unit_bytes = 16;
    loop.chunks = 3;
    loop.body = 1;
    append(block(plan, 1, member), Opcode::nop, {}, {});
  }
  Op& loop = append(block(plan), Opcode::pipeline, {}, {});
  loop.unit_bytes = 16;
  loop.chunks = 3;
  loop.body = 1;
  append(block(plan), Opcode::copy, std::vector{in(0, 3)}, std::vector{out(0, 3)});
  EXPECT_EQ(values(plan), "");
  // One member of three does not do two thirds of the work of two.
  for (uint32_t member = 0; member < 2; ++member) block(plan, 0, member).ops[0].group_size = 3;
  EXPECT_EQ(values(plan), "output[2:3] of rank 1 is never written: this comes nearest to it at 0.1.0\n");
  // A pipeline that is shorter than its data leaves the rest.
  block(plan).ops[1].chunks = 2;
  EXPECT_NE(values(plan).find("output[2:3] of rank 0 is never written"), std::string::npos);
}

TEST(Values, PacketsAndProxiesCarryThem) {
  Plan plan = collective("sendrecv", 1, 1);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(plan, rank), Opcode::put_packets, {in(0)}, {at(2, 0)}, {0}, ChannelType::port);
    add(block(plan, rank), Opcode::unpack_packets, {scratch(0)}, {out(0)});
  }
  EXPECT_EQ(values(plan), "");
  // The packets of a launch are not the plain bytes of scratch.
  block(plan).ops[1].code = Opcode::copy;
  EXPECT_EQ(values(plan),
            "output[0:1] of rank 0 does not hold what it should: it has what scratch[0:1] of rank 0 held "
            "before the "
            "launch, which does not belong there, it lacks input[0:1] of rank 0 at 0.0.1\n");
}

}  // namespace
}  // namespace chorale
