/// \file
/// These tests check switch channels by multicast: what is refused, what operations are lowered to, and whole
/// plans that run with a stand-in for the switch. No GPU runs the instructions.

#include <chorale/json.hpp>
#include <system_error>

#include "chorale/tuned_plans.hpp"
#include "tests/unit/compiler/helpers.hpp"
#include "tests/unit/lowering/bound_ranks.hpp"
#include "tests/unit/message_of_error.hpp"

namespace chorale::test {
namespace {

using namespace cuda;
using namespace lowering;

/// Synchronises all ranks: all have come this far, and everything that they did is visible.
void sync(Plan& plan) {
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(plan, rank), Opcode::signal, {}, {}, {0}, ChannelType::memory);
    add(block(plan, rank), Opcode::wait, {}, {}, {0}, ChannelType::memory);
    add(block(plan, rank), Opcode::nop);
  }
}

/// Each rank adds up one half in all outputs, which are also the inputs.
Plan halves() {
  Plan plan = two_ranks();
  plan.name = "halves";
  plan.collective = "allreduce";
  plan.inplace = true;
  sync(plan);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(plan, rank), Opcode::switch_reduce_broadcast, {at(0, 4 * rank, 4)}, {at(0, 4 * rank, 4)}, {},
        ChannelType::switched)
        .reduce_op = ReduceOp::sum;
  }
  sync(plan);
  return plan;
}

/// Each rank copies its input to its own scratch, adds up all scratch, and sends its result of one half to
/// all ranks.
Plan by_scratch(bool two_banks) {
  Plan plan = two_ranks();
  plan.name = "by_scratch";
  plan.collective = "allreduce";
  plan.use_double_scratch_buffer = two_banks;
  sync(plan);
  for (uint32_t rank = 0; rank < 2; ++rank) add(block(plan, rank), Opcode::copy, {in(0, 8)}, {scratch(0, 8)});
  sync(plan);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(plan, rank), Opcode::switch_reduce, {at(1, 4 * rank, 4)}, {out(4 * rank, 4)}, {},
        ChannelType::switched)
        .reduce_op = ReduceOp::sum;
  }
  sync(plan);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(plan, rank), Opcode::nop);
    add(block(plan, rank), Opcode::switch_broadcast, {out(4 * rank, 4)}, {at(0, 4 * rank, 4)}, {},
        ChannelType::switched);
  }
  sync(plan);
  return plan;
}

/// Each rank sends its part of the output to all ranks.
Plan gather() {
  Plan plan = two_ranks();
  plan.name = "gather";
  plan.collective = "allgather";
  plan.inplace = true;
  for (Gpu& gpu : plan.gpus) gpu.chunks[size_t(BufferKind::output)] = 16;
  sync(plan);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(plan, rank), Opcode::switch_broadcast, {out(8 * rank, 8)}, {at(0, 8 * rank, 8)}, {},
        ChannelType::switched);
  }
  sync(plan);
  return plan;
}

/// Returns how many steps of a kind all ranks have together.
size_t steps_of(BoundRanks& bound, ProgramStepKind kind) {
  size_t n = 0;
  for (const ProgramRank& rank : bound.ranks()) {
    const PageShape& shape = rank.program.page;
    for (uint64_t page = 0; page < uint64_t(rank.program.blocks) * rank.program.pages; ++page) {
      const char* const from = rank.program.bytes.data() + page * shape.bytes();
      const auto& header = *reinterpret_cast<const PageHeader*>(from);
      const auto* const steps = reinterpret_cast<const ProgramStep*>(from + sizeof header);
      for (uint32_t at = 0; at < header.steps; ++at) n += steps[at].kind == kind;
    }
  }
  return n;
}

TEST(Multicast, whole_plans_give_the_result) {
  for (const Plan& plan : {halves(), by_scratch(false), by_scratch(true), gather()}) {
    for (const uint64_t bytes : some_sizes(plan, {1, 5, 25, 33, 66, 257, 1025, 4100})) {
      for (const bool in_place : {false, true}) {
        const ProgramRuns runs{.bytes = bytes, .in_place = in_place, .multicast = true};
        EXPECT_EQ(BoundRanks(plan, runs).run(), "") << plan.name << ", " << bytes << " bytes, " << in_place;
      }
    }
  }
}

TEST(Multicast, goes_through_the_switch) {
  BoundRanks all(halves(), {.bytes = 1024, .multicast = true});
  EXPECT_EQ(steps_of(all, ProgramStepKind::multicast_pass), 2u);
  EXPECT_EQ(steps_of(all, ProgramStepKind::reduce), 0u);
  BoundRanks two(by_scratch(true), {.bytes = 1024, .multicast = true});
  EXPECT_EQ(steps_of(two, ProgramStepKind::multicast_reduce), 2u);
  EXPECT_EQ(steps_of(two, ProgramStepKind::multicast_store), 2u);
  BoundRanks peer(by_scratch(true), {.bytes = 1024});
  for (const ProgramStepKind kind :
       {ProgramStepKind::multicast_reduce, ProgramStepKind::multicast_store, ProgramStepKind::multicast_pass})
    EXPECT_EQ(steps_of(peer, kind), 0u);
}

TEST(Multicast, what_is_no_whole_unit_goes_by_peers) {
  const auto passes_and_sums = [](uint64_t bytes) {
    BoundRanks bound(halves(), {.bytes = bytes, .multicast = true});
    return std::pair(steps_of(bound, ProgramStepKind::multicast_pass),
                     steps_of(bound, ProgramStepKind::reduce));
  };
  using Steps = std::pair<size_t, size_t>;
  EXPECT_EQ(passes_and_sums(256), Steps(2, 0));
  EXPECT_EQ(passes_and_sums(132), Steps(1, 1));  // rank 0's half is 128 bytes, and 4 are left to rank 1
  EXPECT_EQ(passes_and_sums(164), Steps(2, 1));  // and here 36
  EXPECT_EQ(passes_and_sums(4), Steps(0, 1));    // no half is left to rank 1
}

/// Rank 1's part of the output begins 4 bytes after a unit.
TEST(Multicast, what_precedes_a_unit_goes_by_peers) {
  BoundRanks odd(gather(), {.bytes = 264, .in_place = true, .multicast = true});
  EXPECT_EQ(steps_of(odd, ProgramStepKind::multicast_store), 2u);
  EXPECT_EQ(steps_of(odd, ProgramStepKind::copy),
            3u);  // 4 bytes after one's units; 12 before and 8 after the other's
  EXPECT_EQ(odd.run(), "");
}

TEST(Multicast, units_are_those_that_both_places_have) {
  const auto of = [](uint64_t bytes, ProgramPlace from, ProgramPlace to) {
    const UnitsWithin units = units_within(bytes, from, to);
    return std::pair(units.first, units.bytes);
  };
  using Units = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(of(64, {32, 0, 64}, {ProgramPlace::out + 16, 0, unlimited}), Units(0, 64));
  EXPECT_EQ(of(64, {36, 0, 64}, {ProgramPlace::out + 20, 0, 64}), Units(12, 48));
  EXPECT_EQ(of(64, {36, 0, 64}, {ProgramPlace::out + 16, 0, 64}), Units(0, 0));
  EXPECT_EQ(of(64, {32, 0, 40}, {48, 0, 64}), Units(0, 32));
  EXPECT_EQ(of(64, {32, 0, 64}, {48, 0, 15}), Units(0, 0));
  EXPECT_EQ(of(64, {36, 0, 64}, {52, 0, 27}), Units(0, 0));
  EXPECT_EQ(of(64, {36, 0, 64}, {52, 0, 28}), Units(12, 16));
}

TEST(Multicast, members_lie_alike_or_are_not_found) {
  char a[64], b[64], at_switch[64];
  const SwitchAliases aliases{{{{a, b}, at_switch, 64}}, a + 16, nullptr};
  char* alike[] = {a + 8, b + 8};
  EXPECT_EQ(aliases.find(alike, 2, 4), at_switch + 12);
  EXPECT_EQ(aliases.find(alike, 2, 56), nullptr);  // after the end
  EXPECT_EQ(aliases.find(alike, 1, 4), nullptr);   // another group
  char* apart[] = {a + 8, b + 12};
  EXPECT_EQ(aliases.find(apart, 2, 0), nullptr);
  char* swapped[] = {b, a};
  EXPECT_EQ(aliases.find(swapped, 2, 0), nullptr);
  char* passed[] = {reinterpret_cast<char*>(ProgramPlace::in), b + 16};
  EXPECT_EQ(aliases.find(passed, 2, 4), at_switch + 20);
}

TEST(Multicast, a_channel_of_one_rank_is_no_matter_of_a_switch) {
  Plan plan = by_scratch(false);
  for (uint32_t rank = 0; rank < 2; ++rank)
    plan.gpus[rank].channels[2].rank_groups = {{rank}};  // the output's
  BoundRanks bound(plan, {.bytes = 1024, .multicast = true});
  EXPECT_EQ(steps_of(bound, ProgramStepKind::multicast_reduce), 2u);
  EXPECT_EQ(steps_of(bound, ProgramStepKind::multicast_store), 0u);
  EXPECT_EQ(steps_of(bound, ProgramStepKind::copy), 4u);
}

// -- What is refused

std::string refusal(const Plan& plan, DType dtype, std::optional<ReduceOp> op = {}) {
  const Layout layout = layout_of(plan, 1024, dtype);
  return refuse_multicast(plan, lowering::build_image(plan, 0, layout, dtype, op), dtype);
}

TEST(Multicast, combines_what_ptx_has) {
  std::string all;
  for (const DType dtype : all_dtypes) {
    for (const ReduceOp op : all_reduce_ops) {
      if (multicast_combines(dtype, op))
        all += std::string(dtype_name(dtype)) + " " + reduce_op_name(op) + "\n";
    }
  }
  EXPECT_EQ(all,
            "f32 sum\nf32 avg\nf16 sum\nf16 min\nf16 max\nf16 avg\nbf16 sum\nbf16 min\nbf16 max\nbf16 avg\n"
            "f64 sum\nf64 avg\ni32 sum\ni32 min\ni32 max\ni32 avg\nu32 sum\nu32 min\nu32 max\nu32 avg\n"
            "i64 sum\ni64 min\ni64 max\ni64 avg\nu64 sum\nu64 min\nu64 max\nu64 avg\n");
}

TEST(Multicast, other_combinations_are_refused_by_name) {
  const Plan plan = halves();
  EXPECT_EQ(refusal(plan, DType::bf16), "");
  EXPECT_EQ(refusal(plan, DType::i64, ReduceOp::max), "");
  EXPECT_EQ(
      refusal(plan, DType::f32, ReduceOp::max),
      "plan 'halves' combines f32 by max on a switch channel, which multicast does not offer (it has f32: "
      "sum; "
      "f16: sum min max; bf16: sum min max; f64: sum; i32: sum min max; u32: sum min max; i64: sum min max; "
      "u64: sum min max): "
      "take switch_channels = peer");
  for (const DType dtype : {DType::u8, DType::i8, DType::fp8_e4m3, DType::fp8_e5m2})
    EXPECT_NE(refusal(plan, dtype).find("which multicast does not offer"), std::string::npos)
        << dtype_name(dtype);
  EXPECT_NE(refusal(plan, DType::i32, ReduceOp::prod).find("i32 by prod"), std::string::npos);
}

TEST(Multicast, plans_that_reduce_elsewhere_are_not) {
  Plan plan = two_ranks();
  plan.collective = "allreduce";
  add(block(plan), Opcode::reduce, {in(0), in(1)}, {out(0)}).reduce_op = ReduceOp::prod;
  add(block(plan), Opcode::switch_broadcast, {out(0)}, {at(0, 0)}, {}, ChannelType::switched);
  EXPECT_EQ(refusal(plan, DType::u8), "");
}

TEST(Multicast, a_certificate_that_says_how_sums_are_rounded_is_refused) {
  Plan plan = halves();
  const char* const refused =
      "the certificate of plan 'halves' says in which order sums are rounded, and with multicast a switch "
      "adds f32 in "
      "an order of its own: take switch_channels = peer, or the plan without its certificate";
  plan.extension.verified = R"({"same_rounding":true,"reduction_order":null})";
  EXPECT_EQ(refusal(plan, DType::f32), refused);
  plan.extension.verified = R"({"same_rounding":false,"reduction_order":"0 + 1"})";
  EXPECT_EQ(refusal(plan, DType::f32), refused);
  EXPECT_EQ(refusal(plan, DType::i32), "");                  // the bits are the same in any order
  EXPECT_EQ(refusal(plan, DType::bf16, ReduceOp::max), "");  // here, too
  EXPECT_NE(refusal(plan, DType::bf16, ReduceOp::avg), "");
  plan.extension.verified = R"({"same_rounding":false,"reduction_order":null})";
  EXPECT_EQ(refusal(plan, DType::f32), "");
}

/// A caller that needs rank order has it proved, and the certificate tells the executor.
TEST(Multicast, what_is_chosen_for_rank_order_is_refused) {
  const auto make = [](const std::string&, uint32_t) { return halves(); };
  TunedPlans::Choice choice;
  choice.collective = halves().collective;
  choice.name = "halves";
  choice.file = "no/folder/halves_2.json";
  TunedPlans ordered({}, "no/folder", {.ranks = 2, .rank_order = true}, make),
      any({}, "no/folder", {.ranks = 2}, make);
  EXPECT_NE(refusal(ordered.plan(choice), DType::f32).find("says in which order sums are rounded"),
            std::string::npos);
  EXPECT_EQ(refusal(ordered.plan(choice), DType::i32), "");
  EXPECT_EQ(refusal(any.plan(choice), DType::f32), "");
}

TEST(Multicast, places_that_lie_apart_are_refused) {
  Plan plan = by_scratch(true);
  plan.gpus[1].chunks[size_t(BufferKind::scratch)] = 16;
  add(block(plan, 1), Opcode::copy, {in(0, 1)}, {scratch(15, 1)});  // so its second bank begins later
  EXPECT_EQ(message_of_error<UsageError>([&] { BoundRanks(plan, {.bytes = 1024, .multicast = true}); }),
            "operation 7 of a thread block uses a switch channel whose members have the operand at different "
            "offsets "
            "of their buffers' memory, which multicast cannot reach at once: set switch_channels = peer");
  plan = by_scratch(false);
  plan.gpus[1].chunks[size_t(BufferKind::scratch)] = 16;
  EXPECT_EQ(BoundRanks(plan, {.bytes = 1024, .multicast = true}).run(), "");
}

// -- What a plan needs

TEST(Multicast, groups_are_those_of_all_ranks) {
  Plan plan = two_ranks();
  const SwitchUse both(plan);
  EXPECT_EQ(both.groups, (std::vector<std::vector<uint32_t>>{{0, 1}}));
  EXPECT_TRUE(both.passed && both.scratch);
  for (Gpu& gpu : plan.gpus) gpu.channels[2].rank_groups = {{0}};  // the output's: one rank
  const SwitchUse one(plan);
  EXPECT_TRUE(one.any() && !one.passed && one.scratch);
  for (Gpu& gpu : plan.gpus) gpu.channels[3].rank_groups = {{1}};
  EXPECT_FALSE(SwitchUse(plan).any());
}

/// The plans are MSCCL++'s, if they are there.
TEST(Multicast, plans_of_mscclpp_give_the_result) {
  std::error_code none;
  size_t plans = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_dir() / "../shared/mscclpp-plans", none)) {
    const std::string name = entry.path().stem().string();
    if (name.find("nvls") == name.npos || name.find("__n8") != name.npos || name.starts_with("executor_plan"))
      continue;
    const Plan plan = load(entry.path().string());
    for (const uint64_t bytes : some_sizes(plan, {17, 1000, 4099})) {
      const ProgramRuns runs{.bytes = bytes, .in_place = plan.inplace, .multicast = true};
      EXPECT_EQ(BoundRanks(plan, runs).run(), "") << name << ", " << runs.bytes << " bytes";
    }
    ++plans;
  }
  if (plans == 0) GTEST_SKIP() << "MSCCL++'s plans are not here";
}

}  // namespace
}  // namespace chorale::test
