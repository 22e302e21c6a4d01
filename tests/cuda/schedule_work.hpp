/// \file
/// Runs host schedules on CUDA, for tests with GPUs and without.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "chorale/schedule.hpp"
#include "tests/cuda/ranks.hpp"
#include "tests/unit/schedule/schedules.hpp"

namespace chorale::test {

inline Config on_cuda() {
  Config config = Config::load();
  config.backend = std::string("cuda");
  return config;
}

inline std::vector<Form> forms() {
  std::vector<Form> all;
  for (const Order order : {Order::linear, Order::rotated, Order::ring}) {
    all.push_back({order, Style::two, 1});
    all.push_back({order, Style::pool, 4});
  }
  return all;
}

inline int32_t value_at(int run, int rank, uint64_t index) {
  return int32_t((uint64_t(run) * 1000003 + uint64_t(rank) * 8191 + index) * 2654435761u);
}

inline void expect_good(const std::vector<std::string>& said) {
  for (size_t rank = 0; rank < said.size(); ++rank) EXPECT_EQ(said[rank], "good") << "rank " << rank;
}

/// Holds a stream, and a graph of work that was captured on it.
class Stream {
 public:
  Stream() { cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"); }
  Stream(const Stream&) = delete;
  ~Stream() {
    if (replay_) cudaGraphExecDestroy(replay_);
    cudaStreamDestroy(stream_);
  }
  cudaStream_t get() const { return stream_; }

  template <class F>
  void capture(const F& work) {
    cudaGraph_t graph = nullptr;
    cuda::check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "the begin of a capture");
    work();
    cuda::check(cudaStreamEndCapture(stream_, &graph), "the end of a capture");
    cuda::check(cudaGraphInstantiate(&replay_, graph, 0), "a graph");
    cudaGraphDestroy(graph);
  }
  void replay() const { cuda::check(cudaGraphLaunch(replay_, stream_), "a replay"); }

 private:
  cudaStream_t stream_ = nullptr;
  cudaGraphExec_t replay_ = nullptr;
};

/// Provides functions for an all-gather of n elements per rank. They work on the stream that they get.
struct OnStreams {
  const int32_t* from = nullptr;  ///< `produce` copies n elements from here
  int32_t* to = nullptr;          ///< `consume` copies all elements here
  cudaStream_t main = nullptr;    ///< the stream on which they must be called
  int produced = 0, consumed = 0;
  std::string wrong = "";

  HostFunctions functions(const World& world, uint64_t n) {
    const uint64_t ranks = uint64_t(world.ranks());
    HostFunctions both;
    both["produce"] = [this, &world, n](const HostCall& call) {
      ++produced;
      if (!expected(call, world) || call.writes.size() != 1 || !call.reads.empty() ||
          !expected(call.writes[0], {1, n}))
        return;
      copy(call.writes[0].data, from, n, call);
    };
    both["consume"] = [this, &world, ranks, n](const HostCall& call) {
      ++consumed;
      if (!expected(call, world) || call.reads.size() != 1 || !call.writes.empty() ||
          !expected(call.reads[0], {ranks, n}))
        return;
      copy(to, call.reads[0].data, ranks * n, call);
    };
    return both;
  }

 private:
  bool expected(const HostCall& call, const World& world) {
    const bool good = call.rank == world.rank() && call.ranks == world.ranks() && call.stream_index == 0 &&
                      call.stream == main && call.attributes.empty();
    if (!good)
      wrong = fmt::format("{} is called as rank {} of {}, on stream {} of the schedule and {} CUDA stream",
                          call.name, call.rank, call.ranks, call.stream_index,
                          call.stream == main ? "its" : "another");
    return good;
  }
  bool expected(const TensorView& view, const std::vector<uint64_t>& shape) {
    const bool good =
        view.dtype == DType::i32 && view.shape == shape && view.strides == std::vector<uint64_t>{shape[1], 1};
    if (!good)
      wrong = fmt::format("a view is {} with strides {}", view.text(), fmt::join(view.strides, ", "));
    return good;
  }
  static void copy(void* to, const void* from, uint64_t elements, const HostCall& call) {
    cuda::check(cudaMemcpyAsync(to, from, elements * sizeof(int32_t), cudaMemcpyDeviceToDevice,
                                static_cast<cudaStream_t>(call.stream)),
                call.name.data());
  }
};

/// Delays later work on the stream.
inline void delay(cudaStream_t stream) {
  const auto sleep = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(3)); };
  cuda::check(cudaLaunchHostFunc(stream, sleep, nullptr), "a delay");
}

/// Checks that run() returns while a function blocks its stream. The function is released when run() has
/// returned.
inline std::string run_returns_while_a_function_goes_on(World& world, schedule::Mover mover) {
  struct Held {
    std::mutex mutex;
    std::condition_variable changed;
    bool let_go = false, in_vain = false;
  } held;
  const auto hold = [](void* data) {
    Held& held = *static_cast<Held*>(data);
    std::unique_lock lock(held.mutex);
    held.in_vain = !held.changed.wait_for(lock, std::chrono::seconds(10), [&] { return held.let_go; });
  };
  ScheduleArguments arguments{.params = {{"n", 1000}}, .mover = mover};
  arguments.functions["produce"] = [&](const HostCall& call) {
    cuda::check(cudaLaunchHostFunc(static_cast<cudaStream_t>(call.stream), hold, &held),
                "a function of the host");
  };
  arguments.functions["consume"] = [](const HostCall&) {};
  ScheduleRun schedule(world, allgather_p2p({Order::rotated, Style::two, 1}), arguments, on_cuda());
  schedule.run();
  {
    const std::lock_guard lock(held.mutex);
    held.let_go = true;
  }
  held.changed.notify_all();
  schedule.synchronize();
  world.barrier();
  return held.in_vain ? "run() has waited for a function" : "good";
}

/// Runs on two ranks. Rank 0 has enqueued its run when rank 1, which never runs, ends the world by `end`.
/// Rank 0's wait then ends because of `end`, and not at the deadline.
inline std::string wait_for_who_ends(World& world, schedule::Mover mover, const std::function<void()>& end,
                                     RunError::Reason reason, const std::string& why) {
  ScheduleArguments arguments{.params = {{"n", 1000}}, .mover = mover};
  arguments.functions["produce"] = arguments.functions["consume"] = [](const HostCall&) {};
  ScheduleRun schedule(world, allgather_p2p({Order::rotated, Style::two, 1}), arguments, on_cuda());
  if (world.rank() == 1) {
    world.barrier();
    end();
    return "good";
  }
  try {
    schedule.run();
    world.barrier();
    schedule.synchronize();
  } catch (const RunError& error) {
    const std::string text = error.what();
    const bool named = error.reason == reason && text.find("rank 1") != std::string::npos &&
                       text.find(why) != std::string::npos;
    return named ? "good" : text;
  }
  return "nothing was thrown";
}

/// Makes rank 1 abort in the middle of a run, or end its process.
inline void expect_ends_of_runs() {
  for (const schedule::Mover mover : {schedule::Mover::ce_put, schedule::Mover::ce_get}) {
    SCOPED_TRACE(schedule::mover_names[size_t(mover)]);
    expect_good(on_processes(2, [&](World& world) {
      return wait_for_who_ends(
          world, mover, [&] { world.abort("enough"); }, RunError::Reason::aborted, "enough");
    }));
    const std::vector<std::string> said = on_processes(2, [&](World& world) {
      return wait_for_who_ends(
          world, mover, [] { _exit(0); }, RunError::Reason::peer_lost, "died");
    });
    EXPECT_EQ(said[0], "good");
    EXPECT_EQ(said[1], "");
  }
}

/// Runs on two ranks. Rank 1 binds and never runs. Rank 0's wait ends at its deadline and reports what it
/// waited for.
inline std::string wait_for_who_never_runs(World& world, schedule::Mover mover, const std::string& what) {
  Config config = on_cuda();
  config.timeout = std::chrono::nanoseconds(std::chrono::milliseconds(500));
  ScheduleArguments arguments{.params = {{"n", 1000}}, .mover = mover};
  arguments.functions["produce"] = arguments.functions["consume"] = [](const HostCall&) {};
  ScheduleRun schedule(world, allgather_p2p({Order::rotated, Style::two, 1}), arguments, config);
  if (world.rank() == 1) {
    // Rank 1 receives the timeout in a collective.
    try {
      world.barrier();
    } catch (const RunError&) {
      return std::string("good");
    }
    return std::string("rank 1 heard nothing");
  }
  try {
    schedule.run();
    schedule.synchronize();
  } catch (const RunError& error) {
    const std::string text = error.what();
    const bool named = error.reason == RunError::Reason::timed_out &&
                       text.find("rank 0, stream comm, i = 1: " + what) != std::string::npos &&
                       text.find("from rank 1") != std::string::npos;
    return named ? std::string("good") : text;
  }
  return std::string("nothing was thrown");
}

}  // namespace chorale::test
