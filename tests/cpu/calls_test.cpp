/// \file
/// Calls that an executor refuses.

#include <atomic>
#include <thread>

#include "tests/cpu/harness.hpp"

namespace chorale::test {
namespace {

/// The first of two is in its launch, which waits for the other rank, when the second comes.
TEST(Calls, OfTwoThreadsAtOnceAreRefused) {
  const Plan plan = load(source_dir() / "plans/shipped/allreduce_one_shot_2.json");
  std::atomic<bool> refused{false};
  run_local(2, [&](World& world) {
    Executor executor(world);
    Ints in(64, 1), out(64), other(64);
    const auto call = [&](Ints& to) {
      try {
        executor.execute(plan, {.in = in.data(), .out = to.data(), .bytes = 256, .dtype = DType::i32});
        EXPECT_EQ(to, Ints(64, 2));
      } catch (const UsageError& wrong) {
        EXPECT_NE(std::string(wrong.what()).find("another thread is in one"), std::string::npos)
            << wrong.what();
        EXPECT_FALSE(refused.exchange(true));
      }
    };
    executor.prepare(plan, {.in = in.data(), .out = out.data(), .bytes = 256, .dtype = DType::i32});
    if (world.rank() == 0) {
      std::thread one([&] { call(out); });
      call(other);
      one.join();
    } else {
      while (!refused) std::this_thread::yield();
      call(out);
    }
  });
  EXPECT_TRUE(refused);
}

/// What a size is multiplied by does not make a small one of it.
TEST(Calls, MessagesThatNoMachineHasAreRefused) {
  for (const std::string name : {"allreduce_one_shot_2", "allreduce_ring_2", "allgather_direct_2",
                                 "reducescatter_direct_2", "alltoall_direct_2"}) {
    const Plan plan = load(source_dir() / "plans/shipped" / (name + ".json"));
    for (const uint64_t bytes : {~uint64_t(7), uint64_t(1) << 63, uint64_t(1) << 57}) {
      try {
        message_sizes(plan, bytes, DType::i32);
        ADD_FAILURE() << name << " takes " << bytes << " bytes";
      } catch (const UsageError& wrong) {
        EXPECT_NE(std::string(wrong.what()).find("which no machine has"), std::string::npos) << wrong.what();
      }
    }
  }
}

TEST(Calls, WithNumbersThatNameNothingAreRefused) {
  const Plan plan = load(source_dir() / "plans/shipped/allreduce_one_shot_2.json");
  run_local(2, [&](World& world) {
    Executor executor(world);
    Ints in(64, 1), out(64);
    const auto said = [&](const Arguments& with) {
      try {
        executor.execute(plan, with);
      } catch (const UsageError& wrong) {
        return std::string(wrong.what());
      }
      return std::string("nothing");
    };
    Arguments good{.in = in.data(), .out = out.data(), .bytes = 256, .dtype = DType::i32};
    Arguments dtype = good, op = good, packet = good;
    dtype.dtype = DType(99);
    op.op = ReduceOp(99);
    packet.packet = PacketForm(99);
    EXPECT_NE(said(dtype).find("99 is none that we know"), std::string::npos);
    EXPECT_NE(said(op).find("99 is none that we know"), std::string::npos);
    EXPECT_NE(said(packet).find("99 is none that we know"), std::string::npos);
    executor.execute(plan, good);
    EXPECT_EQ(out, Ints(64, 2));
  });
}

TEST(Calls, ForMemoryThatCannotBeHadAreRefused) {
  run_local(1, [](World& world) {
    Executor executor(world);
    for (const uint64_t bytes : {~uint64_t(0), uint64_t(1) << 63})
      EXPECT_THROW(executor.allocate(bytes), RunError) << bytes;
  });
}

}  // namespace
}  // namespace chorale::test
