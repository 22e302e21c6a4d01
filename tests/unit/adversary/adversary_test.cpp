// These tests run whole plans on the adversarial machine: right plans never fail, and wrong ones do.

#include "helpers.hpp"

namespace chorale {
namespace {

using Kind = Verdict::Kind;

Verdict try_hard(const Plan& plan, uint64_t schedules = 1000, const AdversaryOptions& options = {}) {
  return Adversary(plan, options).run_all(0, schedules);
}

// -- Shipped plans

void expect_all_stand(const std::string& ranks, uint64_t schedules) {
  for (const std::string& file : shipped(ranks)) {
    const Verdict verdict = try_hard(load(file), schedules);
    EXPECT_TRUE(verdict.ok()) << file << ", seed " << verdict.seed << ": " << verdict.text;
  }
}

TEST(Adversary, ShippedPlansOf2RanksStand) { expect_all_stand("2", 40); }
TEST(Adversary, ShippedPlansOf4RanksStand) { expect_all_stand("4", 8); }
TEST(Adversary, ShippedPlansOf8RanksStand) { expect_all_stand("8", 1); }

/// A read in another form than that of the write returns other data.
TEST(Adversary, EncodedDataIsDecoded) {
  const Plan right = shipped_plan("allreduce_quantised_2");
  EXPECT_TRUE(try_hard(right, 10).ok());
  EXPECT_TRUE(try_hard(right, 10, {.bytes = 16384, .dtype = DType::bf16}).ok());
  EXPECT_EQ(try_hard(right, 1, {.bytes = 4096, .dtype = DType::i32}).kind, Kind::refused);
  for (const Opcode reader : {Opcode::reduce_send, Opcode::copy}) {
    Plan plan = right;
    for (ThreadBlock& block : plan.gpus[0].threadblocks) {
      for (const Op& op : block.ops) {
        for (Operand& source : block.sources(op)) source.codec = op.code == reader ? 0 : source.codec;
      }
    }
    EXPECT_FALSE(try_hard(plan, 1).ok()) << info(reader).name;
  }
}

TEST(Adversary, EveryFormOfPacketsStands) {
  for (const PacketForm form : {PacketForm::ll8, PacketForm::ll16, PacketForm::ll128}) {
    for (const char* name : {"allreduce_one_shot_4", "allreduce_two_shot_4", "allgather_packets_4"}) {
      const Verdict verdict = try_hard(shipped_plan(name), 50, {.packet = form});
      EXPECT_TRUE(verdict.ok()) << name << ": " << verdict.text;
    }
  }
}

/// The first chunk of the output is copied to the next two, turn by turn. This is right if a chunk
/// is at least as long as a turn.
TEST(Adversary, ChunksShorterThanATurnFail) {
  using namespace dsl;
  const auto post = [](int64_t, int64_t) { return std::vector<Contribution>{{.rank = 0, .chunk = 0}}; };
  for (const uint64_t least : {0u, 4080u, 4081u}) {
    Program program({.name = "spread",
                     .collective = Custom{.ranks = 1, .input = 1, .output = 3, .post = post},
                     .min_message_size = least});
    const Rank me(program, 0);
    const Buffer kept(program, 0, 2);
    const auto in = me.get_input_buffer(), out = me.get_output_buffer();
    me.copy(out[0], in[0], 0);
    program.loop(4096, 2, [&] {
      me.copy(kept[{0, 2}], out[{0, 2}], 0);
      me.copy(out[{1, 3}], kept[{0, 2}], 0);
    });
    // Chunks are multiples of 16 bytes. Turns are lengthened only if the plan takes shorter chunks.
    EXPECT_EQ(try_hard(plan_of(program), 100).ok(), least > 4080) << least;
    if (least == 0) {
      EXPECT_TRUE(try_hard(plan_of(program), 100, {.bytes = 8192}).ok());
    }
  }
}

/// An operand reaches beyond the chunks of its pipeline, where nothing was written. This is right if a chunk,
/// of 16 bytes or more, is at least as long as a turn.
TEST(Adversary, ChunksThatAreATurnStand) {
  using namespace dsl;
  for (const int64_t unit : {16, 32}) {
    Program program(
        {.name = "behind",
         .collective = Custom{.ranks = 1, .input = 2, .output = 2, .post = [](int64_t, int64_t chunk) {
                                return std::vector<Contribution>{{.rank = 0, .chunk = uint64_t(chunk)}};
                              }}});
    const Rank me(program, 0);
    const Buffer kept(program, 0, 2);
    me.copy(me.get_output_buffer()[1], me.get_input_buffer()[1], 0);
    me.copy(kept[0], me.get_input_buffer()[0], 0);
    program.loop(unit, 1, [&] { me.copy(me.get_output_buffer()[{0, 2}], kept[{0, 2}], 0); });
    EXPECT_EQ(try_hard(plan_of(program), 100).ok(), unit == 16) << unit;
  }
}

/// Every rank gets the peer's part before the peer has written it. What it reads was left there by the
/// application, because the plan has no scratch.
TEST(Adversary, AVerdictNamesNoScratchThatThePlanLacks) {
  using namespace dsl;
  Program program({.name = "early", .collective = AllGather{.ranks = 2, .chunk_factor = 1}});
  for (int rank = 0; rank < 2; ++rank) {
    const Rank me(program, rank), other(program, 1 - rank);
    me.copy(me.get_output_buffer()[rank], me.get_input_buffer()[0], 0);
    MemoryChannel(program, 1 - rank, rank)
        .get(me.get_output_buffer()[1 - rank], other.get_output_buffer()[1 - rank], 0);
  }
  Adversary adversary(plan_of(program));
  int seen = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Verdict verdict = adversary.run(seed);
    seen += verdict.kind == Kind::overwrite_seen;
    EXPECT_EQ(verdict.text.find("scratch"), std::string::npos) << seed << ": " << verdict.text;
  }
  EXPECT_GT(seen, 0);
}

TEST(Adversary, AnySizeStands) {
  for (const uint64_t bytes : {1, 17, 100, 1000}) {
    const Verdict verdict = try_hard(shipped_plan("allreduce_ring_4"), 20, {.bytes = bytes});
    EXPECT_TRUE(verdict.ok()) << bytes << " bytes: " << verdict.text;
  }
}

// -- Plans that are broken

TEST(Adversary, RelaxedSignalsPublishNothing) {
  const Plan plan = replaced(shipped_plan("allgather_direct_4"), Opcode::signal, Opcode::relaxed_signal);
  EXPECT_EQ(try_hard(plan).kind, Kind::wrong_result);
}

TEST(Adversary, RelaxedWaitsSeeNothing) {
  const Plan plan = replaced(shipped_plan("allreduce_ring_4"), Opcode::wait, Opcode::relaxed_wait);
  EXPECT_EQ(try_hard(plan).kind, Kind::wrong_result);
}

TEST(Adversary, EveryWaitOfARingIsNeeded) {
  const Plan plan = shipped_plan("allreduce_ring_2");
  uint32_t waits = 0;
  for (size_t at = 0; at < plan.gpus[0].threadblocks[0].ops.size(); ++at) {
    if (plan.gpus[0].threadblocks[0].ops[at].code != Opcode::wait) continue;
    Plan broken = plan;
    auto& ops = broken.gpus[0].threadblocks[0].ops;
    ops.erase(ops.begin() + ptrdiff_t(at));
    EXPECT_FALSE(try_hard(broken).ok()) << "without op " << at;
    ++waits;
  }
  EXPECT_GT(waits, 1u);
}

TEST(Adversary, PacketsThatNobodySendsAreWaitedForInVain) {
  Plan plan = shipped_plan("allgather_packets_2");
  auto& ops = plan.gpus[0].threadblocks[0].ops;
  const auto send =
      std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.code == Opcode::put_packets; });
  ASSERT_NE(send, ops.end());
  ops.erase(send);
  EXPECT_EQ(try_hard(plan).kind, Kind::deadlock);
}

TEST(Adversary, AnOperandPastItsBufferIsRefused) {
  Plan plan = shipped_plan("allgather_direct_2");
  plan.gpus[0].threadblocks[0].operands[0].size += 100;
  const Verdict verdict = try_hard(plan);
  EXPECT_EQ(verdict.kind, Kind::refused);
  EXPECT_NE(verdict.text.find("rank 0"), std::string::npos) << verdict.text;
}

TEST(Adversary, ASlowRankSeesTheInputOverwritten) {
  // Rank 1 reads the input of rank 0, which does not wait until that is done.
  using namespace dsl;
  const auto from_rank_0 = [](int64_t rank, int64_t) {
    return rank == 1 ? std::vector<Contribution>{{.rank = 0, .chunk = 0}} : std::vector<Contribution>{};
  };
  Program program(
      {.name = "left_early", .collective = Custom{.ranks = 2, .input = 1, .output = 1, .post = from_rank_0}});
  const MemoryChannel back(program, 0, 1), there(program, 1, 0);
  there.signal(0);
  back.wait(0);
  back.get(program.rank(1).get_output_buffer()[0], program.rank(0).get_input_buffer()[0], 0);
  const Verdict verdict = try_hard(plan_of(program));
  EXPECT_EQ(verdict.kind, Kind::overwrite_seen) << verdict.text;
  EXPECT_EQ(verdict.rank, 1u);
}

TEST(Adversary, WhatPromisesNothingMustGiveTheSameEachTime) {
  // Each rank puts into the input from which the other one puts.
  using namespace dsl;
  Program program({.name = "crossed", .collective = TestCollective{.ranks = 2, .input = 1, .output = 1}});
  const MemoryChannel channels[] = {{program, 1, 0}, {program, 0, 1}};
  for (int rank = 0; rank < 2; ++rank) channels[rank].signal(0);
  for (int rank = 0; rank < 2; ++rank) channels[rank].wait(0);
  for (int rank = 0; rank < 2; ++rank) {
    channels[rank].put(program.rank(1 - rank).get_input_buffer()[0], program.rank(rank).get_input_buffer()[0],
                       0);
  }
  for (int rank = 0; rank < 2; ++rank) channels[rank].signal(0);
  for (int rank = 0; rank < 2; ++rank) channels[rank].wait(0);
  const Verdict verdict = try_hard(plan_of(program));
  EXPECT_EQ(verdict.kind, Kind::wrong_result);
  EXPECT_NE(verdict.text.find("the input of rank"), std::string::npos) << verdict.text;
}

/// Rank 0 sends its input, or a part of it, to rank 1, which has begun.
dsl::Program send_once(int ranks, bool rightly) {
  using namespace dsl;
  Program program({.name = "send_once", .collective = SendRecv{.ranks = ranks, .chunk_factor = 2}});
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  back.signal(0);
  there.wait(0);
  const auto to = program.rank(1).get_output_buffer(), from = program.rank(0).get_input_buffer();
  there.put(to[0], from[0], 0);
  there.put(to[1], from[rightly ? 1 : 0], 0);
  there.signal(0);
  back.wait(0);
  return program;
}

TEST(Adversary, WhoIsSentNothingHasAnOutputAsItWas) {
  for (const int ranks : {2, 3}) {
    const Plan plan = plan_of(send_once(ranks, true));
    EXPECT_EQ(prove(plan).size(), 0u);
    const Verdict right = try_hard(plan, 50);
    EXPECT_TRUE(right.ok()) << right.text;
    // A wrong result is still found on the rank that receives data.
    const Verdict wrong = try_hard(plan_of(send_once(ranks, false)), 50);
    EXPECT_EQ(wrong.kind, Kind::wrong_result);
    EXPECT_EQ(wrong.rank, 1u) << wrong.text;
  }
}

TEST(Adversary, AWriteAfterTheEndOfALaunchIsSeen) {
  // Rank 1 does not wait for the data that rank 0 puts into its output.
  using namespace dsl;
  Program program({.name = "unasked", .collective = TestCollective{.ranks = 2, .input = 1, .output = 1}});
  const MemoryChannel there(program, 1, 0);
  there.put(program.rank(1).get_output_buffer()[0], program.rank(0).get_input_buffer()[0], 0);
  const Verdict verdict = try_hard(plan_of(program));
  EXPECT_TRUE(verdict.kind == Kind::late_write || verdict.kind == Kind::wrong_result) << verdict.text;
}

// -- Programs of tests/wrong that order decides

Plan wrong_program(const char* name) { return plan_of(dsl::build(name)); }

TEST(Adversary, WrongProgramsFail) {
  const Verdict cycle = try_hard(wrong_program("W01_wait_before_signal"));
  EXPECT_EQ(cycle.kind, Kind::deadlock);
  EXPECT_NE(cycle.text.find(
                "W01_wait_before_signal.cpp:12) wait on memory channel 0 from rank 1: expected 1, seen 0"),
            std::string::npos)
      << cycle.text;
  EXPECT_EQ(try_hard(wrong_program("W04_blocks_without_order")).kind, Kind::wrong_result);
  EXPECT_FALSE(try_hard(wrong_program("W67_relaxed_signal")).ok());
}

TEST(Adversary, RightProgramsStand) {
  for (const char* name : {"W69_copy_then_broadcast", "W71_semaphore_as_lock", "W63_packets_in_a_pipeline",
                           "W64_packets_over_a_port", "W51_double_scratch", "W55_reused_resources"}) {
    const Verdict verdict = try_hard(wrong_program(name));
    EXPECT_TRUE(verdict.ok()) << name << ", seed " << verdict.seed << ": " << verdict.text;
  }
}

// -- Repetition

TEST(Adversary, ASeedRepeatsItsSchedule) {
  const Plan plan = replaced(shipped_plan("allgather_ring_4"), Opcode::wait, Opcode::relaxed_wait);
  Adversary first(plan), second(plan);
  const Verdict failed = first.run_all(0, 1000);
  ASSERT_FALSE(failed.ok());
  const Verdict again = second.run(failed.seed);
  EXPECT_EQ(again.text, failed.text);
  EXPECT_EQ(again, first.run(failed.seed));
  EXPECT_NE(first.run(failed.seed + 1).steps, again.steps);
}

TEST(Adversary, ABoundOnStepsEndsASchedule) {
  EXPECT_EQ(try_hard(shipped_plan("allreduce_ring_4"), 1, {.max_steps = 100}).kind, Kind::too_long);
}

}  // namespace
}  // namespace chorale
