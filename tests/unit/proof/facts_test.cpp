// These tests check what is true of plans without findings, and the certificate that says so.

#include <utility>

#include "tests/unit/proof/findings.hpp"

namespace chorale {
namespace {

/// Both ranks put into the peer's output, between two exchanges of signals.
Plan exchange(bool guarded, bool quiescent) {
  Plan plan = two_ranks();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    if (guarded) control(plan, Opcode::signal, 0, rank), control(plan, Opcode::wait, 0, rank);
    add(block(plan, rank), Opcode::put, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
    if (quiescent) control(plan, Opcode::signal, 1, rank), control(plan, Opcode::wait, 1, rank);
  }
  return plan;
}

ProofFacts facts_of(const Plan& plan, const std::vector<std::string>& allow = {}) {
  const Proof proof = prove_plan(plan, allow, true);
  EXPECT_EQ(render(plan, proof.diagnostics()), "");
  return proof.facts;
}

TEST(Facts, WhoIsInARanksMemoryAndWhen) {
  for (const bool guarded : {false, true}) {
    for (const bool quiescent : {false, true}) {
      const ProofFacts facts = facts_of(exchange(guarded, quiescent), {"replay"});
      EXPECT_EQ(facts.entry_guarded, guarded);
      EXPECT_EQ(facts.exit_quiescent, quiescent);
    }
  }
}

TEST(Facts, PacketsHaveArrivedWhereTheyWereRead) {
  Plan plan = two_ranks();
  add(block(plan, 0), Opcode::put_packets, {in(0, 2)}, {at(2, 0, 2)}, {}, ChannelType::memory);
  add(block(plan, 1), Opcode::unpack_packets, {scratch(0, 2)}, {out(0, 2)});
  EXPECT_TRUE(facts_of(plan, {"replay"}).exit_quiescent);
  block(plan, 1).operands[0].size = block(plan, 1).operands[1].size = 1;
  EXPECT_FALSE(facts_of(plan, {"replay"}).exit_quiescent);
}

TEST(Facts, CopiesOfScratch) {
  // A rank that has been answered may overwrite at once. A rank that only sends gets its answer in the next
  // launch.
  Plan plan = two_ranks();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(plan, rank), Opcode::put_packets, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
    add(block(plan, rank), Opcode::unpack_packets, {scratch(0)}, {out(0)});
  }
  EXPECT_EQ(facts_of(plan).scratch_copies, 2u);
  EXPECT_EQ(facts_of(plan).launches, 3u);
  for (uint32_t rank = 0; rank < 2; ++rank)
    control(plan, Opcode::signal, 0, rank), control(plan, Opcode::wait, 0, rank);
  EXPECT_EQ(facts_of(plan).scratch_copies, 1u);
  EXPECT_EQ(facts_of(two_ranks()).scratch_copies, 1u);
}

/// Every rank gets its peer's encoded input and adds its own, as it is or decoded.
Plan coded_sum(bool own_decoded, bool encoded_again) {
  Plan plan = two_ranks();
  plan.collective = "allreduce";
  plan.extension.codecs = {{CodecFormat::fp8_e4m3, 128}};
  for (uint32_t rank = 0; rank < 2; ++rank) {
    plan.gpus[rank].chunks[0] = plan.gpus[rank].chunks[1] = 1;
    copy(plan, in(0), coded(scratch(0)), 0, rank);
    control(plan, Opcode::signal, 0, rank), control(plan, Opcode::wait, 0, rank);
    add(block(plan, rank), Opcode::put, {coded(scratch(0))}, {coded(at(2, 1))}, {}, ChannelType::memory);
    control(plan, Opcode::signal, 1, rank), control(plan, Opcode::wait, 1, rank);
    add(block(plan, rank), Opcode::reduce, {own_decoded ? coded(scratch(0)) : in(0), coded(scratch(1))},
        {encoded_again ? coded(scratch(2)) : out(0)});
    nop(plan, rank);
    if (encoded_again) copy(plan, coded(scratch(2)), out(0), 0, rank);
  }
  return plan;
}

TEST(Facts, HowOftenAddendsAreEncoded) {
  const ProofFacts once = facts_of(coded_sum(true, false)), twice = facts_of(coded_sum(true, true));
  EXPECT_EQ(quantised_words(once.quantised), "1 x fp8_e4m3");  // a copy of encoded data does not encode again
  EXPECT_EQ(error_bound(once.quantised), "(1 + 1/28) - 1");
  EXPECT_EQ(quantised_words(twice.quantised), "2 x fp8_e4m3");
  EXPECT_EQ(error_bound(twice.quantised), "(1 + 1/28)^2 - 1");
  EXPECT_DOUBLE_EQ(error_factor(twice.quantised), (1 + 1 / 28.0) * (1 + 1 / 28.0) - 1);
  EXPECT_EQ(error_bound({1, 0, 3}), "(1 + 1/28) * (1 + 1/254)^3 - 1");
  EXPECT_EQ(error_bound({}), "0");
  EXPECT_NE(once.other_order, "");  // plans with other blocks compute other bits
}

TEST(Facts, EncodedAddendsHaveOtherBits) {
  EXPECT_TRUE(facts_of(coded_sum(true, true)).rounding.empty());
  // Each rank adds its own addend as it is and that of its peer encoded, so the two sums differ.
  EXPECT_EQ(facts_of(coded_sum(false, false)).rounding,
            std::vector<std::string>{
                "output[0:1] of rank 1 is added up or encoded in another way than output[0:1] of rank 0"});
}

/// Each rank adds the four chunks of its own input, in its own order, in one operation or in two.
Plan add_up(std::vector<Operand> first, std::vector<Operand> second, bool in_two) {
  Plan plan = two_ranks();
  plan.collective = "custom";
  const std::vector<Contribution> all = {{0, 0}, {0, 1}, {0, 2}};
  for (Gpu& gpu : plan.gpus) {
    gpu.chunks[0] = 3;
    gpu.chunks[1] = 1;
    plan.extension.post.push_back({all});
  }
  plan.extension.input_segments = 3;
  plan.extension.output_segments = 1;
  control(plan, Opcode::signal, 0, 0), control(plan, Opcode::wait, 0, 1);
  add(block(plan, 1), Opcode::get, {at(0, 0, 3)}, {scratch(0, 3)}, {}, ChannelType::memory);
  control(plan, Opcode::signal, 1, 1), control(plan, Opcode::wait, 1, 0);
  add(block(plan, 0), Opcode::reduce, std::move(first), {out(0)});
  if (!in_two) {
    add(block(plan, 1), Opcode::reduce, std::move(second), {out(0)});
    return plan;
  }
  add(block(plan, 1), Opcode::reduce, {second[0], second[1]}, {scratch(4)});
  add(block(plan, 1), Opcode::nop);
  add(block(plan, 1), Opcode::reduce, {scratch(4), second[2]}, {out(0)});
  return plan;
}

TEST(Facts, OrderOfAddends) {
  const std::vector<std::string> allow = {"replay", "races"};
  const auto rounding = [&](const Plan& plan) { return facts_of(plan, allow).rounding; };
  const std::vector<std::string> differs = {
      "output[0:1] of rank 1 is added up in another order than output[0:1] of rank 0"};
  EXPECT_EQ(rounding(add_up({in(0), in(1), in(2)}, {scratch(0), scratch(1), scratch(2)}, false)),
            std::vector<std::string>());
  // Two addends may be swapped, three may not.
  EXPECT_EQ(rounding(add_up({in(0), in(1), in(2)}, {scratch(1), scratch(0), scratch(2)}, false)),
            std::vector<std::string>());
  EXPECT_EQ(rounding(add_up({in(0), in(1), in(2)}, {scratch(0), scratch(2), scratch(1)}, false)), differs);
  // A sum that is stored in between is rounded.
  EXPECT_EQ(rounding(add_up({in(0), in(1), in(2)}, {scratch(0), scratch(1), scratch(2)}, true)), differs);
}

TEST(Facts, OneOrderForAllElements) {
  // Three chunks of one rank's input are added, so the rank's number alone would not say the order.
  const Plan own = add_up({in(0), in(1), in(2)}, {scratch(0), scratch(2), scratch(1)}, false);
  EXPECT_EQ(facts_of(own, {"replay", "races"}).other_order,
            "output[0:1] of rank 0 adds up several parts of one rank's input");
  // The same chunk is added three times.
  Plan plan = two_ranks();
  plan.collective = "custom";
  for (Gpu& gpu : plan.gpus) gpu.chunks[0] = gpu.chunks[1] = 2;
  plan.extension.input_segments = plan.extension.output_segments = 2;
  plan.extension.post = {{{{0, 0}, {0, 0}, {0, 0}}, {{0, 1}, {0, 1}, {0, 1}}}, {}};
  add(block(plan), Opcode::reduce, {in(0), in(0), in(0)}, {out(0)});
  add(block(plan), Opcode::reduce, {in(1), in(1), in(1)}, {out(1)});
  EXPECT_EQ(facts_of(plan).other_order, "");
  EXPECT_EQ(facts_of(plan).order, "0 + 0 + 0");
  block(plan).ops.pop_back();
  add(block(plan), Opcode::reduce, {in(1), in(1)}, {scratch(0)});
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::reduce, {in(1), scratch(0)}, {out(1)});
  EXPECT_EQ(facts_of(plan).other_order,
            "output[1:2] of rank 0 is (0 + 0) + 0, but output[0:1] of rank 0 is 0 + 0 + 0");
}

TEST(Facts, OrderThatDependsOnWhichBlockIsFirst) {
  Plan plan = two_ranks();
  plan.collective = "custom";
  plan.extension.bounded_proof = true;
  for (Gpu& gpu : plan.gpus) gpu.chunks[0] = gpu.chunks[1] = 1;
  plan.extension.input_segments = plan.extension.output_segments = 1;
  plan.extension.post = {{{{0, 0}, {0, 0}, {1, 0}}}, {}};
  add(block(plan), Opcode::get, {at(0, 0)}, {scratch(0)}, {}, ChannelType::memory);
  add(block(plan), Opcode::copy, {in(0)}, {out(0)});
  control(plan, Opcode::sem_release, 1, 0, 0), control(plan, Opcode::sem_acquire, 1, 0, 1);
  plan.gpus[0].semaphores[0] = 1;
  for (uint32_t on = 0; on < 2; ++on) {
    control(plan, Opcode::sem_acquire, 0, 0, on);
    add(block(plan, 0, on), Opcode::reduce, {out(0), on ? in(0) : scratch(0)}, {out(0)});
    control(plan, Opcode::sem_release, 0, 0, on);
  }
  EXPECT_EQ(facts_of(plan, {"replay", "races"}).other_order,
            "outputs are (0 + 0) + 1 or (0 + 1) + 0, as the message is cut and blocks go on");
}

/// Both ranks add up their inputs, while two blocks take a lock in turns.
Plan add_beside_a_lock(uint32_t turns) {
  Plan plan = two_ranks();
  plan.collective = "allreduce";
  plan.extension.bounded_proof = true;
  plan.gpus[0].semaphores[0] = 1;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    plan.gpus[rank].chunks[0] = plan.gpus[rank].chunks[1] = 1;
    control(plan, Opcode::signal, 0, rank), control(plan, Opcode::wait, 0, rank);
    add(block(plan, rank), Opcode::read_reduce, {in(0), at(0, 0)}, {out(0)}, {}, ChannelType::memory);
    control(plan, Opcode::signal, 0, rank), control(plan, Opcode::wait, 0, rank);
  }
  for (uint32_t turn = 0; turn < turns; ++turn) {
    for (uint32_t on = 0; on < 2; ++on)
      control(plan, Opcode::sem_acquire, 0, 0, on), control(plan, Opcode::sem_release, 0, 0, on);
  }
  return plan;
}

TEST(Facts, OrderOfOrdersThatWereNotTried) {
  EXPECT_EQ(facts_of(add_beside_a_lock(1)).order, "0 + 1");
  EXPECT_EQ(facts_of(add_beside_a_lock(1)).other_order, "");
  EXPECT_EQ(facts_of(add_beside_a_lock(8)).other_order,
            "thread blocks compete, and only some of the orders were tried");
}

Plan certified() {
  Plan plan = exchange(true, true);
  EXPECT_EQ(render(plan, compile(plan, {.certify = true})), "");
  return plan;
}

TEST(Certificate, HoldsUntilThePlanIsChanged) {
  Plan plan = certified();
  EXPECT_NE(plan.extension.verified.find(R"("verdict":"proved")"), std::string::npos)
      << plan.extension.verified;
  EXPECT_EQ(refute_certificate(plan), "");
  EXPECT_EQ(refute_certificate(read(write(plan))), "");
  // Neither lines nor unknown keys matter.
  plan.source = {{"mine.cpp", 3}};
  EXPECT_EQ(refute_certificate(plan), "");
  plan.gpus[1].threadblocks[0].ops.back().code = Opcode::relaxed_wait;
  EXPECT_EQ(refute_certificate(plan), "rank 1 was changed after the plan was proved");
  plan = certified();
  plan.inplace = true;
  EXPECT_EQ(refute_certificate(plan), "the plan was changed after it was proved");
  plan.extension.verified = R"({"hash":"0","checker":0})";
  EXPECT_EQ(refute_certificate(plan), "it is of version 0 of the proofs, but this is version 4");
  plan.extension.verified.clear();
  EXPECT_EQ(refute_certificate(plan), "there is none");
}

TEST(Certificate, IsOfTheCodecs) {
  const auto certified = [] {
    Plan plan = coded_sum(true, true);
    EXPECT_EQ(render(plan, compile(plan, {.certify = true})), "");
    return plan;
  };
  Plan plan = certified();
  EXPECT_NE(plan.extension.verified.find(R"("quantised":"2 x fp8_e4m3","error_bound":"(1 + 1/28)^2 - 1")"),
            std::string::npos)
      << plan.extension.verified;
  EXPECT_EQ(refute_certificate(read(write(plan))), "");
  for (Operand& operand : plan.gpus[1].threadblocks[0].operands) operand.codec = 0;
  EXPECT_EQ(refute_certificate(plan), "rank 1 was changed after the plan was proved");
  plan = certified();
  plan.extension.codecs[0].block = 64;
  EXPECT_EQ(refute_certificate(plan), "the plan was changed after it was proved");
}

TEST(Certificate, IsOfAllProofsAndOfOurTarget) {
  Plan plan = exchange(true, true);
  EXPECT_THROW(compile(plan, {.certify = true, .allow = {"replay"}}), std::invalid_argument);
  EXPECT_EQ(render(plan, compile(plan, {.target = Target::mscclpp,
                                        .certify = true,
                                        .allow = {"mscclpp_chunk_counts", "mscclpp_fences"}})),
            "");
  EXPECT_EQ(plan.extension.verified, "");
}

}  // namespace
}  // namespace chorale
