/// \file
/// Tests the calls that an executor refuses.

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "chorale/needs.hpp"
#include "executor/fibers/sanitizers.hpp"
#include "tests/cpu/harness.hpp"
#include "tests/unit/scarce_memory.hpp"
#include "tests/unit/thrown.hpp"
#include "tests/unit/world/processes.hpp"

namespace chorale::test {
namespace {

/// The first thread is in its launch, which waits for the other rank, when the second one calls.
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

/// All calls that read or extend the data of a launch are refused as well. A thread that watches the launch
/// may call check().
TEST(Calls, BesideALaunchAreRefusedButForCheck) {
  const Plan plan = load(source_dir() / "plans/shipped/allreduce_one_shot_2.json");
  std::atomic<bool> over{false};
  run_local(2, [&](World& world) {
    Executor executor(world);
    Ints in(64, 1), out(64);
    const Arguments arguments{.in = in.data(), .out = out.data(), .bytes = 256, .dtype = DType::i32};
    executor.prepare(plan, arguments);
    if (world.rank() == 1) {
      over.wait(false);
      return executor.execute(plan, arguments);
    }
    std::thread launch([&] {
      while (thrown([&] { executor.execute(plan, arguments); }) != "nothing")
        continue;  // this call came second
    });
    const auto refused = [](const std::function<void()>& call) {
      // Calls are refused only after the launch has begun. The loop runs out of time only if they never are.
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
      while (std::chrono::steady_clock::now() < end) {
        try {
          call();
        } catch (const UsageError& wrong) {
          return std::string(wrong.what()).find("another thread is in one") != std::string::npos;
        }
      }
      return false;
    };
    EXPECT_TRUE(refused([&] { executor.trace(); }));
    EXPECT_TRUE(refused([&] { executor.synchronize(); }));
    EXPECT_TRUE(refused([&] { executor.allocate(64); }));
    EXPECT_NO_THROW(executor.check());
    over = true;
    over.notify_one();
    launch.join();
    EXPECT_EQ(out, Ints(64, 2));
    EXPECT_NO_THROW(executor.trace());
  });
}

/// With a seed ranks are fibers, and every launch that has begun ends.
TEST(Calls, OfAnotherThreadAreRefusedWithASeed) {
  const Plan plan = load(source_dir() / "plans/shipped/allreduce_one_shot_2.json");
  run_local(
      2,
      [&](World& world) {
        Executor executor(world);
        Ints in(64, 1), out(64);
        const Arguments arguments{.in = in.data(), .out = out.data(), .bytes = 256, .dtype = DType::i32};
        for (int times = 0; times < 2; ++times) {
          std::string said;
          std::thread([&] { said = thrown([&] { executor.execute(plan, arguments); }); }).join();
          EXPECT_EQ(said.find("usage: a world with a seed was used by a thread other than"), 0u) << said;
          out.assign(64, 0);
          executor.execute(plan, arguments);
          EXPECT_EQ(out, Ints(64, 2));
        }
      },
      {.seed = 7});
}

/// Keeps the process from starting a thread while it exists. It also occupies the stacks of earlier threads,
/// which would be reused.
class NoThread {
 public:
  NoThread() {
    try {
      for (;;) threads_.emplace_back([this] { ended_.wait(false); });
    } catch (const std::system_error&) {
    }
  }
  ~NoThread() {
    ended_ = true;
    ended_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  const ScarceMemory scarce_{2};
  std::atomic<bool> ended_{false};
  std::vector<std::thread> threads_;
};

/// Without this thread the data that the other ranks wait for would not be transferred.
TEST(Calls, ForWhichOneRankHasNoThreadAreAnErrorOfAll) {
#if defined(CHORALE_ASAN) || defined(CHORALE_TSAN)
  GTEST_SKIP() << "shadows of the sanitizers are address space";
#endif
  const Plan plan = load(source_dir() / "plans/shipped/allreduce_two_level_4.json");
  const std::string address = fresh_address();
  Processes ranks(4, [&](int rank) -> std::string {
    World world = World::join(address, rank, 4);
    Executor executor(world);
    Ints in(64, 1), out(64);
    const std::optional<NoThread> none = rank == 1 ? std::optional<NoThread>(std::in_place) : std::nullopt;
    executor.prepare(plan, {.in = in.data(), .out = out.data(), .bytes = 256, .dtype = DType::i32});
    return "prepared";
  });
  for (int rank = 0; rank < 4; ++rank) {
    const std::string said = ranks.said(rank);
    EXPECT_EQ(said.find("resources: rank 1: no thread for the proxy of port channels: "), 0u) << said;
  }
}

/// A product of sizes must not overflow to a small number.
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
    EXPECT_NE(said(dtype).find("99 is unknown"), std::string::npos);
    EXPECT_NE(said(op).find("99 is unknown"), std::string::npos);
    EXPECT_NE(said(packet).find("99 is unknown"), std::string::npos);
    executor.execute(plan, good);
    EXPECT_EQ(out, Ints(64, 2));
  });
}

/// The other ranks neither read out of bounds nor wait.
TEST(Calls, WithNumbersOfOneRankThatNameNothingAreRefusedOnAll) {
  const Plan plan = load(source_dir() / "plans/shipped/allreduce_one_shot_2.json");
  Arguments dtype, op, packet;
  dtype.dtype = DType(99);
  op.op = ReduceOp(99);
  packet.packet = PacketForm(20);
  const std::vector<std::pair<Arguments, std::string>> all = {
      {dtype, "dtype 99"}, {op, "op 99"}, {packet, "packet 20"}};
  for (const auto& [wrong, name] : all) {
    std::vector<std::string> said(2);
    run_local(2, [&, &wrong = wrong](World& world) {
      Executor executor(world);
      Ints in(64, 1), out(64);
      Arguments call = world.rank() == 1 ? wrong : Arguments();
      call.in = in.data();
      call.out = out.data();
      call.bytes = 256;
      said[size_t(world.rank())] = thrown([&] { executor.execute(plan, call); });
    });
    EXPECT_EQ(said[0], "usage: rank 1: " + name + " is unknown");
    EXPECT_EQ(said[1], "usage: " + name + " is unknown");
  }
}

/// The unknown operator must not be mistaken for another one.
TEST(Calls, OfPlansWithAnUnknownOperatorAreRefused) {
  Plan plan = load(source_dir() / "plans/shipped/allreduce_one_shot_2.json");
  for (Gpu& gpu : plan.gpus) {
    for (ThreadBlock& block : gpu.threadblocks) {
      for (Op& op : block.ops) {
        if (info(op.code).has(Role::Reduce)) op.reduce_op = ReduceOp(99);
      }
    }
  }
  run_local(2, [&](World& world) {
    Executor executor(world);
    Ints in(64, 1), out(64);
    try {
      executor.execute(plan, {.in = in.data(), .out = out.data(), .bytes = 256, .dtype = DType::i32});
      ADD_FAILURE() << "executed";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("reduction operator 99 is unknown"), std::string::npos)
          << error.what();
    }
  });
}

TEST(Calls, ForMemoryThatCannotBeHadAreRefused) {
  run_local(1, [](World& world) {
    Executor executor(world);
    for (const uint64_t bytes : {~uint64_t(0), uint64_t(1) << 63})
      EXPECT_THROW(executor.allocate(bytes), RunError) << bytes;
  });
}

/// Callers that keep buffers in place for peers depend on this.
TEST(Needs, WhetherPeersReachTheBuffers) {
  const auto reached = [](const std::string& name) {
    const Plan plan = load(source_dir() / "plans/shipped" / name);
    const RankNeeds needs = needs_of(plan, 1, 1024, DType::f32);
    return std::pair(needs.input_reached, needs.output_reached);
  };
  EXPECT_EQ(reached("allreduce_one_shot_2.json"), std::pair(false, false)) << "packets go to scratch";
  EXPECT_EQ(reached("allgather_direct_2.json"), std::pair(false, true));
  EXPECT_EQ(reached("reducescatter_direct_2.json"), std::pair(true, false));
}

}  // namespace
}  // namespace chorale::test
