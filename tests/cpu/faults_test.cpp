/// \file
/// What goes wrong must be said by every rank, at once where it can be known, with the place in the plan.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "tests/cpu/harness.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;

Plan shipped(const std::string& name) {
  return load((source_dir() / "plans/shipped" / (name + ".json")).string());
}

/// What a call throws; reason other and "" if it does not.
struct Thrown {
  RunError::Reason reason = RunError::Reason::other;
  bool usage = false;
  std::string text;
};

template <class F>
Thrown thrown(const F& f) {
  try {
    f();
  } catch (const RunError& error) {
    return {error.reason, false, error.what()};
  } catch (const UsageError& error) {
    return {RunError::Reason::other, true, error.what()};
  }
  return {};
}

/// Each rank on a thread.
template <class F>
void on_ranks(int ranks, LocalOptions options, const F& f) {
  std::vector<World> worlds = World::local(ranks, options);
  std::vector<std::jthread> threads;
  for (World& world : worlds) threads.emplace_back([&f, &world] { f(world); });
}

/// A plan in which each of two ranks waits before it signals.
Plan both_wait_first() {
  Plan plan;
  plan.name = "both_wait";
  plan.collective = "allreduce";
  plan.source = {{"mine.cpp", 11}, {"mine.cpp", 12}};
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Gpu gpu;
    gpu.id = rank;
    gpu.chunks[0] = gpu.chunks[1] = 1;
    gpu.channels.push_back({.type = ChannelType::memory, .connected_to = {1 - rank}, .rank_groups = {}});
    ThreadBlock block;
    block.channels.push_back({ChannelType::memory, {0}});
    const uint32_t channel[] = {0};
    Op& wait = append(block, Opcode::wait, {}, {}, channel);
    wait.via = ChannelType::memory;
    wait.at = 1;
    Op& signal = append(block, Opcode::signal, {}, {}, channel);
    signal.via = ChannelType::memory;
    signal.at = 2;
    gpu.threadblocks.push_back(block);
    plan.gpus.push_back(gpu);
  }
  return plan;
}

TEST(Faults, a_deadlock_is_reported_at_once_with_both_waits) {
  const Plan plan = both_wait_first();
  for (const bool seeded : {false, true}) {
    const auto start = std::chrono::steady_clock::now();
    std::string text[2];
    LocalOptions options;
    if (seeded) options.seed = 1;
    const Thrown all = thrown([&] {
      run_local(
          2,
          [&](World& world) {
            Executor executor(world);
            float in = 1, out = 0;
            const Thrown mine = thrown([&] { executor.execute(plan, {.in = &in, .out = &out, .bytes = 4}); });
            EXPECT_EQ(mine.reason, RunError::Reason::deadlock);
            text[world.rank()] = mine.text;
          },
          options);
    });
    EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
    for (const std::string& one : text) {
      EXPECT_NE(
          one.find(
              "rank 0 block 0 op 0 (mine.cpp:11) wait on memory channel 0 from rank 1: expected 1, seen 0"),
          std::string::npos)
          << one;
      EXPECT_NE(
          one.find(
              "rank 1 block 0 op 0 (mine.cpp:11) wait on memory channel 0 from rank 0: expected 1, seen 0"),
          std::string::npos)
          << one;
    }
  }
}

TEST(Faults, a_missing_rank_is_named) {
  const Plan plan = shipped("allreduce_ring_4");
  on_ranks(4, {.seed = {}, .workers = 0, .timeout = 300ms}, [&](World& world) {
    Executor executor(world);
    std::vector<float> in(64, 1), out(64);
    const Arguments arguments{.in = in.data(), .out = out.data(), .bytes = 256};
    executor.execute(plan, arguments);
    if (world.rank() == 2) {
      std::this_thread::sleep_for(900ms);
      return;
    }
    const Thrown mine = thrown([&] { executor.execute(plan, arguments); });
    EXPECT_EQ(mine.reason, RunError::Reason::timed_out) << mine.text;
    EXPECT_NE(mine.text.find("rank 2"), std::string::npos) << mine.text;
  });
}

TEST(Faults, ranks_that_disagree_are_told_so) {
  const Plan plan = shipped("allreduce_ring_2"), other = shipped("allreduce_two_shot_2");
  const auto differ = [&](const char* what, const auto& change) {
    on_ranks(2, {}, [&](World& world) {
      Executor executor(world);
      std::vector<float> in(64, 1), out(64);
      Arguments arguments{.in = in.data(), .out = out.data(), .bytes = 256};
      const Plan* mine = &plan;
      if (world.rank() == 1) change(arguments, mine);
      const Thrown error = thrown([&] { executor.execute(*mine, arguments); });
      EXPECT_EQ(error.reason, RunError::Reason::mismatch);
      EXPECT_NE(error.text.find(std::string("ranks 0 and 1 disagree on ") + what), std::string::npos)
          << error.text;
      // Nothing was stopped: what they agree on runs.
      executor.execute(plan, {.in = in.data(), .out = out.data(), .bytes = 256});
      EXPECT_EQ(out[63], 2);
    });
  };
  differ("bytes: 256 and 128", [](Arguments& arguments, const Plan*&) { arguments.bytes = 128; });
  differ("dtype: f32 and i32", [](Arguments& arguments, const Plan*&) { arguments.dtype = DType::i32; });
  differ("op: the plan's and max", [](Arguments& arguments, const Plan*&) { arguments.op = ReduceOp::max; });
  differ("packet: ll8 and ll16",
         [](Arguments& arguments, const Plan*&) { arguments.packet = PacketForm::ll16; });
  differ("the plan: 'allreduce_ring'", [&](Arguments&, const Plan*& mine) { mine = &other; });
}

TEST(Faults, wrong_calls_say_what_is_right) {
  const Plan plan = shipped("allreduce_ring_2"), scatter = shipped("reducescatter_direct_2"),
             gather = shipped("allgather_direct_2"), eight = shipped("allreduce_ring_8");
  on_ranks(2, {}, [&](World& world) {
    Executor executor(world);
    std::vector<float> data(128, 1);
    const auto says = [&](const Plan& of, const Arguments& arguments, const std::string& text) {
      const Thrown mine = thrown([&] { executor.execute(of, arguments); });
      EXPECT_TRUE(mine.usage) << mine.text;
      EXPECT_NE(mine.text.find(text), std::string::npos) << mine.text;
    };
    float* const at = data.data();
    says(plan, {.in = at, .out = at + 64, .bytes = 10}, "the nearest sizes are 8 and 12");
    says(scatter, {.in = at, .out = at + 64, .bytes = 12}, "the nearest sizes are 8 and 16");
    says(eight, {.in = at, .out = at + 64, .bytes = 64}, "is for 8 ranks, but the world has 2");
    says(plan, {.in = at, .out = at + 8, .bytes = 64}, "overlap");
    says(plan, {.in = nullptr, .out = at + 8, .bytes = 64}, "in is null");
    says(gather, {.in = at, .out = at + 64, .bytes = 64, .op = ReduceOp::avg},
         "avg is for allreduce and reducescatter");
    Plan small = plan;
    small.max_message_size = 32;
    says(small, {.in = at, .out = at + 64, .bytes = 64}, "takes messages of 0 to 32 bytes, not 64");
    executor.execute(plan, {.in = nullptr, .out = nullptr, .bytes = 0});
    executor.execute(plan, {.in = at, .out = at + 64, .bytes = 64});
    EXPECT_EQ(data[64], 2);
  });
}

TEST(Faults, an_abort_ends_a_run_and_a_reset_takes_it_back) {
  const Plan waits = both_wait_first();
  const Plan plan = shipped("allreduce_ring_2");
  on_ranks(2, {}, [&](World& world) {
    Executor executor(world);
    std::vector<float> in(64, 1), out(64);
    const Arguments arguments{.in = in.data(), .out = out.data(), .bytes = 256};
    executor.execute(plan, arguments);
    if (world.rank() == 0) {
      std::jthread other([&] {
        std::this_thread::sleep_for(100ms);
        world.abort("enough");
      });
      const Thrown mine = thrown([&] { executor.execute(plan, arguments); });
      EXPECT_EQ(mine.reason, RunError::Reason::aborted) << mine.text;
      EXPECT_NE(mine.text.find("enough"), std::string::npos);
    } else {
      std::this_thread::sleep_for(250ms);
      const Thrown mine = thrown([&] { executor.execute(plan, arguments); });
      EXPECT_EQ(mine.reason, RunError::Reason::aborted) << mine.text;
    }
    EXPECT_NE(thrown([&] { executor.execute(plan, arguments); }).text, "");
    world.reset();
    for (int again = 0; again < 3; ++again) {
      std::fill(out.begin(), out.end(), 0.0f);
      executor.execute(plan, arguments);
      EXPECT_EQ(out[5], 2);
    }
  });
}

/// Ranks as processes that run `f` and exit with what it gives. Returns the wait statuses.
template <class F>
std::vector<int> processes(int ranks, JoinOptions options, const F& f) {
  static std::atomic<int> turn{0};
  const std::string name = "shm://chorale-test-" + std::to_string(getpid()) + "-" + std::to_string(turn++);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      int code = 99;
      try {
        World world = World::join(name, rank, ranks, options);
        code = f(world);
      } catch (const std::exception& error) {
        fprintf(stderr, "rank %d: %s\n", rank, error.what());
      }
      _exit(code);
    }
    children.push_back(pid);
  }
  std::vector<int> codes;
  for (const pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  }
  return codes;
}

TEST(Processes, give_the_results_of_threads) {
  for (const char* name : {"allreduce_ring_4", "allreduce_one_shot_4", "allreduce_two_shot_4",
                           "allreduce_all_pairs_4", "allgather_direct_4", "allgather_ring_4",
                           "alltoall_direct_4", "reducescatter_direct_4", "broadcast_direct_4"}) {
    const Plan plan = shipped(name);
    const std::vector<int> codes = processes(4, {}, [&](World& world) {
      Executor executor(world);
      for (const Where where : {Where::apart, Where::in_place, Where::allocated}) {
        for (const uint64_t bytes : some_sizes(plan, {1, 5, 1024, 9001})) {
          const std::string wrong = run_rank(world, executor, plan, {.bytes = bytes, .where = where});
          if (!wrong.empty()) {
            fprintf(stderr, "%s, %d: %s\n", name, int(where), wrong.c_str());
            return 1;
          }
        }
      }
      return 0;
    });
    EXPECT_EQ(codes, std::vector<int>(4, 0)) << name;
  }
}

TEST(Processes, mscclpp_plans_in_place) {
  const std::filesystem::path folder = source_dir() / "../shared/mscclpp-plans";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  for (const char* name :
       {"single_node-allreduce__n4", "single_node-allgather-scalable__n4",
        "single_node-alltoall-alltoall__n4", "single_node-allreduce_pkt__n4",
        "single_node-allgather_nvls_zero_copy__n4-i2", "single_node-allreduce_pipeline__n2"}) {
    const Plan plan = load((folder / (std::string(name) + ".json")).string());
    const int ranks = int(plan.ranks());
    const std::vector<int> codes = processes(ranks, {}, [&](World& world) {
      Executor executor(world);
      for (const Where where : {Where::apart, Where::in_place, Where::allocated}) {
        const std::string wrong =
            run_rank(world, executor, plan, {.bytes = some_sizes(plan, {1028})[0], .where = where});
        if (!wrong.empty()) {
          fprintf(stderr, "%s, %d: %s\n", name, int(where), wrong.c_str());
          return 1;
        }
      }
      return 0;
    });
    EXPECT_EQ(codes, std::vector<int>(size_t(ranks), 0)) << name;
  }
}

TEST(Processes, a_killed_rank_is_named_by_the_others) {
  const Plan plan = shipped("allreduce_ring_4");
  const std::vector<int> codes = processes(4, {.workers = 1, .timeout = 20s}, [&](World& world) {
    Executor executor(world);
    std::vector<float> in(64, 1), out(64);
    const Arguments arguments{.in = in.data(), .out = out.data(), .bytes = 256};
    executor.prepare(plan, arguments);
    world.barrier();
    const auto start = std::chrono::steady_clock::now();
    for (int launch = 0; launch < 1000000; ++launch) {
      if (world.rank() == 1 && launch == 50) kill(getpid(), SIGKILL);
      const Thrown mine = thrown([&] { executor.execute(plan, arguments); });
      if (mine.text.empty()) continue;
      const bool soon = std::chrono::steady_clock::now() - start < 10s;
      const bool named =
          mine.reason == RunError::Reason::peer_lost && mine.text.find("rank 1") != std::string::npos;
      if (!soon || !named) fprintf(stderr, "%s\n", mine.text.c_str());
      return soon && named ? 7 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{7, -SIGKILL, 7, 7}));
}

}  // namespace
}  // namespace chorale::test
