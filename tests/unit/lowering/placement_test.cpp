/// \file
/// These tests check what is copied before a run on buffers that peers cannot reach.

#include "executor/lowering/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "chorale/layout.hpp"
#include "tests/unit/compiler/helpers.hpp"
#include "tests/unit/message_of_error.hpp"

namespace chorale {
namespace {

using namespace lowering;

/// Returns whether the output is copied to the staging memory before a run, so that what the plan does not
/// write comes back as it was.
bool keeps_output(const Plan& plan) {
  const Layout layout = layout_of(plan, 64, DType::i32);
  const auto bytes = size_t(layout.sizes.input + layout.sizes.output);
  std::vector<char> in(bytes), out(bytes), staging(2 * bytes);
  const Placed placed = Placement(plan, 0, layout)
                            .place(in.data(), out.data(),
                                   {[] { return nullptr; }, [&] { return staging.data(); },
                                    [](const char*, uint64_t) { return false; }});
  EXPECT_TRUE(placed.staged);
  EXPECT_EQ(placed.after.to, out.data());
  EXPECT_TRUE(!placed.before[1].needed() || placed.before[1].from == out.data());
  return placed.before[1].needed();
}

TEST(Placement, KeepsWhatThePlanMayLeaveAsItWas) {
  const auto keeps = [](const char* collective) {
    Plan plan = two_ranks();
    plan.collective = collective;
    return keeps_output(plan);
  };
  EXPECT_FALSE(keeps("allreduce"));
  EXPECT_FALSE(keeps("broadcast"));
  for (const char* const may : {"sendrecv", "custom", "test", "mine"}) EXPECT_TRUE(keeps(may)) << may;
  Plan own = two_ranks();
  own.collective = "allreduce";
  own.extension.post = {{{}}, {{{0, 0}}}};  // it promises nothing of rank 0's output
  EXPECT_TRUE(keeps_output(own));
}

// Other ranks than the root of a reduce may pass null, unless the plan uses their output.
TEST(Placement, NeedsNoOutputWhereNothingIsPromised) {
  Plan plan = two_ranks();
  plan.collective = "reduce";
  plan.extension.root = 1;
  for (Gpu& gpu : plan.gpus) {
    gpu.threadblocks.clear();
    gpu.channels.clear();
    gpu.remote_buffers.clear();
  }
  const Layout layout = layout_of(plan, 64, DType::i32);
  std::vector<char> in(64);
  const auto place = [&](uint32_t rank) {
    Placement(plan, rank, layout).place(in.data(), nullptr, {[] { return nullptr; }, {}, {}}, false);
  };
  EXPECT_NO_THROW(place(0));
  EXPECT_EQ(test::message_of_error<UsageError>([&] { place(1); }), "rank 1: out is null");
  RemoteBuffer remote{};
  remote.rank = 0;
  remote.buffer = BufferKind::output;
  plan.gpus[1].remote_buffers.push_back(remote);
  EXPECT_EQ(test::message_of_error<UsageError>([&] { place(0); }), "rank 0: out is null");
}

/// Peers that move whole units of 16 bytes need them aligned in every buffer that they access.
TEST(Placement, AlignsWhatPeersAccess) {
  Plan plan = two_ranks();
  plan.collective = "allgather";
  plan.inplace = false;
  for (Gpu& gpu : plan.gpus) {
    gpu.chunks[size_t(BufferKind::input)] = 4;
    gpu.chunks[size_t(BufferKind::output)] = 8;
  }
  RemoteBuffer remote{};
  remote.rank = 1;
  for (const BufferKind kind : {BufferKind::input, BufferKind::output}) {
    remote.buffer = kind;
    plan.gpus[0].remote_buffers.push_back(remote);
  }
  const Layout layout = layout_of(plan, 2 * 72, DType::i8);
  ASSERT_EQ(layout.sizes.input, 72u);
  alignas(16) char out[2 * 72], shared[16 + 3 * 72];
  bool reaches_all = true;
  const StagingMemory staging{
      [] { return nullptr; }, [&] { return shared; },
      [&](const char* at, uint64_t) { return reaches_all || (at >= shared && at < shared + sizeof shared); },
      true};
  const auto place = [&] { return Placement(plan, 1, layout).place(out + 72, out, staging, true); };
  Placed placed = place();
  EXPECT_EQ(placed.in, shared) << "in place, the input is not aligned";
  EXPECT_EQ(placed.out, out);
  reaches_all = false;
  placed = place();
  EXPECT_EQ(placed.in, shared);
  EXPECT_EQ(placed.out, shared + 80);
}

/// Checks the placement of a piece: parts of 32 bytes that are 96 bytes apart in the caller's buffers.
class Pieces : public ::testing::Test {
 protected:
  static constexpr uint64_t part = 32, distance = 96, gap = distance - part;

  static Plan plan_of(const char* collective, bool inplace) {
    Plan plan = two_ranks();
    plan.collective = collective;
    plan.inplace = inplace;
    RemoteBuffer remote{};
    remote.rank = 1;
    for (const BufferKind kind : {BufferKind::input, BufferKind::output}) {
      remote.buffer = kind;
      plan.gpus[0].remote_buffers.push_back(remote);
    }
    for (Gpu& gpu : plan.gpus) {
      gpu.chunks[size_t(BufferKind::input)] = plan.collective == "allgather" ? 1 : 2;
      gpu.chunks[size_t(BufferKind::output)] = plan.collective == "reducescatter" ? 1 : 2;
    }
    return plan;
  }

  Placed place(const Plan& plan, bool reachable) {
    const StagingMemory staging{[] { return nullptr; }, [&] { return shared; },
                                [&](const char* at, uint64_t bytes) {
                                  if (at >= shared && at + bytes <= shared + sizeof shared) return true;
                                  asked = std::max(asked, bytes);
                                  return reachable;
                                },
                                true};
    return Placement(plan, 1, layout_of(plan, 2 * part, DType::i8), distance).place(in, out, staging, true);
  }

  alignas(16) char memory[2 * distance], other[2 * distance], shared[16 + 4 * part];
  char *in = memory, *out = other;
  uint64_t asked = 0;  ///< the most bytes that peers should reach
};

TEST_F(Pieces, KeepTheirDistance) {
  Placed placed = place(plan_of("alltoall", false), true);
  EXPECT_EQ(placed.in, in);
  EXPECT_EQ(placed.in_gap, gap);
  EXPECT_EQ(placed.out_gap, gap);
  EXPECT_EQ(placed.in_span, distance + part);
  EXPECT_EQ(asked, distance + part);
  placed = place(plan_of("allgather", false), true);
  EXPECT_EQ(placed.in_gap, 0u) << "the input is one part";
  EXPECT_EQ(placed.in_span, part);
  EXPECT_EQ(placed.out_gap, gap);
}

TEST_F(Pieces, AreCopiedToAdjacentParts) {
  const Placed placed = place(plan_of("reducescatter", false), false);
  EXPECT_EQ(placed.in, shared);
  EXPECT_EQ(placed.in_gap, 0u);
  EXPECT_EQ(placed.in_span, 2 * part);
  const Move& before = placed.before[0];
  EXPECT_EQ(before.from, in);
  EXPECT_EQ(before.bytes, part);
  EXPECT_EQ(before.rows, 2u);
  EXPECT_EQ(before.to_distance, part);
  EXPECT_EQ(before.from_distance, distance);
  EXPECT_EQ(placed.out, shared + 2 * part);
  EXPECT_EQ(placed.after.rows, 1u) << "the output is one part";
  EXPECT_EQ(placed.after.bytes, part);
}

TEST_F(Pieces, AreInPlaceWhereTheWholePartsAre) {
  in = out + distance;
  Placed placed = place(plan_of("allgather", true), true);
  EXPECT_EQ(placed.in, out + distance);
  EXPECT_EQ(placed.out, out);
  EXPECT_FALSE(placed.before[0].needed());
  EXPECT_EQ(asked, distance + part);
  placed = place(plan_of("allgather", true), false);
  EXPECT_EQ(placed.out, shared);
  EXPECT_EQ(placed.in, shared + part);
  EXPECT_EQ(placed.in_gap + placed.out_gap, 0u);
  EXPECT_EQ(placed.after.to, out);
  EXPECT_EQ(placed.after.to_distance, distance);
  EXPECT_EQ(placed.after.from_distance, part);
  in = out + part;  // not where the second part begins
  EXPECT_NE(
      test::message_of_error<UsageError>([&] { place(plan_of("allgather", true), true); }).find("overlap"),
      std::string::npos);
}

}  // namespace
}  // namespace chorale
