/// \file
/// These tests check what is copied before a run on buffers that peers cannot reach.

#include "executor/lowering/placement.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace chorale
