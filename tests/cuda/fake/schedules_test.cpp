// Tests host schedules over streams. In this fake CUDA streams are threads, and kernels are the CPU's.
// Without a GPU, the tests show what streams, flags, memory of peers and the watcher do. cuda_schedules runs
// on GPUs.

#include "tests/unit/schedule/schedules.hpp"

#include <algorithm>
#include <cstring>

#include "bench/overlap/schedules.hpp"
#include "chorale/device/numeric.hpp"
#include "chorale/dsl/registry.hpp"
#include "chorale/executor.hpp"
#include "chorale/schedule.hpp"
#include "executor/schedule/backend.hpp"
#include "executor/schedule/copy.hpp"
#include "executor/schedule/cuda/kernels.hpp"
#include "state.hpp"
#include "streams.hpp"
#include "tests/cuda/many_streams.hpp"
#include "tests/cuda/schedule_work.hpp"
#include "tests/unit/schedule/exchange.hpp"
#include "tests/unit/thrown.hpp"

namespace chorale::schedule_run {

HostFunctions cpu_functions();

/// Returns the CPU's functions, which run when the stream reaches them.
HostFunctions cuda_functions(uint32_t) {
  HostFunctions all;
  for (const auto& [name, function] : cpu_functions()) {
    all[name] = [function = function](const HostCall& call) {
      struct Kept {
        std::string name;
        std::vector<TensorView> writes, reads;
        std::map<std::string, int64_t> attributes;
      };
      const auto kept = std::make_shared<Kept>();
      *kept = {std::string(call.name),
               {call.writes.begin(), call.writes.end()},
               {call.reads.begin(), call.reads.end()},
               call.attributes};
      test::fake::enqueue(static_cast<cudaStream_t>(call.stream), [function, kept] {
        function({.name = kept->name,
                  .writes = kept->writes,
                  .reads = kept->reads,
                  .attributes = kept->attributes});
      });
    };
  }
  return all;
}
std::string cuda_misfit(const HostCall&) { return ""; }
cudaError_t enqueue_count(uint64_t* count, cudaStream_t stream) {
  test::fake::enqueue(stream, [count] { ++*count; });
  return cudaSuccess;
}
cudaError_t enqueue_copy(const Copy& copy, uint32_t, cudaStream_t stream) {
  if (copy.bytes == 0) return cudaSuccess;  // there may be no memory either
  test::fake::enqueue(stream, [copy] {
    for (uint64_t row = 0; row < copy.rows; ++row)
      std::memcpy(copy.to + row * copy.to_pitch, copy.from + row * copy.from_pitch, copy.bytes);
  });
  return cudaSuccess;
}

}  // namespace chorale::schedule_run

namespace chorale::test {
namespace {

using schedule::Mover;

constexpr int runs = 5;
constexpr Mover movers[] = {Mover::ce_put, Mover::ce_get};

/// Holds memory as cudaMalloc() returns it. The host can access it here.
template <class T>
class Array {
 public:
  explicit Array(uint64_t n) : n_(n) { cuda::check(cudaMalloc(&data_, n * sizeof(T) + 16), "cudaMalloc"); }
  Array(const Array&) = delete;
  ~Array() { cudaFree(data_); }
  T* data() const { return static_cast<T*>(data_); }
  uint64_t bytes() const { return n_ * sizeof(T); }

 private:
  uint64_t n_;
  void* data_ = nullptr;
};

/// Runs a schedule on a separate stream, run by run or as replays of a graph.
class Enqueued {
 public:
  /// \param stream  receives the stream
  Enqueued(ScheduleRun& schedule, bool replayed, cudaStream_t* stream = nullptr) : schedule_(schedule) {
    cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    if (stream) *stream = stream_;
    if (!replayed) return;
    cudaGraph_t graph = nullptr;
    cuda::check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "the begin of a capture");
    schedule.run(stream_);
    cuda::check(cudaStreamEndCapture(stream_, &graph), "the end of a capture");
    cuda::check(cudaGraphInstantiate(&replay_, graph, 0), "a graph");
    cudaGraphDestroy(graph);
  }
  Enqueued(const Enqueued&) = delete;
  ~Enqueued() {
    if (replay_) cudaGraphExecDestroy(replay_);
    cudaStreamDestroy(stream_);
  }
  cudaStream_t stream() const { return stream_; }
  void run() const {
    if (replay_) {
      cudaGraphLaunch(replay_, stream_);
    } else {
      schedule_.run(stream_);
    }
  }

 private:
  ScheduleRun& schedule_;
  cudaStream_t stream_ = nullptr;
  cudaGraphExec_t replay_ = nullptr;
};

/// Runs with new data, without the host waiting between the runs. In a graph, functions copy from and to one
/// place, which other work fills and reads.
std::string allgather(World& world, const Form& form, Mover mover, uint64_t n, bool replayed,
                      bool late = false) {
  const uint64_t all = n * uint64_t(world.ranks());
  Array<int32_t> in(n), out(all), fed(n * runs), kept(all * runs), consumed(all * runs), next(n), last(all);
  for (uint64_t at = 0; at < n * runs; ++at) fed.data()[at] = value_at(int(at / n), world.rank(), at % n);
  OnStreams on_streams{.from = next.data(), .to = last.data()};
  ScheduleRun schedule(world, allgather_p2p(form),
                       {.buffers = {{"t0", in.data()}, {"t1", out.data()}},
                        .params = {{"n", int64_t(n)}},
                        .functions = on_streams.functions(world, n),
                        .mover = mover},
                       on_cuda());
  const Enqueued enqueued(schedule, replayed, &on_streams.main);
  const cudaStream_t stream = enqueued.stream();
  for (uint64_t run = 0; run < runs; ++run) {
    if (late && int(run) % world.ranks() == world.rank()) delay(stream);
    if (replayed) {
      cudaMemcpyAsync(next.data(), fed.data() + run * n, in.bytes(), cudaMemcpyDefault, stream);
    } else {
      on_streams.from = fed.data() + run * n;
      on_streams.to = consumed.data() + run * all;
    }
    enqueued.run();
    if (replayed)
      cudaMemcpyAsync(consumed.data() + run * all, last.data(), out.bytes(), cudaMemcpyDefault, stream);
    cudaMemcpyAsync(kept.data() + run * all, out.data(), out.bytes(), cudaMemcpyDefault, stream);
  }
  schedule.synchronize(stream);
  world.barrier();  // peers read this rank's memory
  const int called = replayed ? 1 : runs;
  if (on_streams.wrong.empty() && (on_streams.produced != called || on_streams.consumed != called))
    return fmt::format("functions are called {} and {} times", on_streams.produced, on_streams.consumed);
  if (!on_streams.wrong.empty()) return on_streams.wrong;
  for (uint64_t at = 0; at < all * runs; ++at) {
    const int32_t expected = value_at(int(at / all), int(at % all / n), at % n);
    if (kept.data()[at] != expected || consumed.data()[at] != expected)
      return fmt::format("{} via {}, n = {}: run {}, element {} is {}, and {} for a function, not {}",
                         form.text(), schedule::mover_names[size_t(mover)], n, at / all, at % all,
                         kept.data()[at], consumed.data()[at], expected);
  }
  return "good";
}

std::string ag_matmul(World& world, const Form& form, Mover mover) {
  const uint64_t ranks = uint64_t(world.ranks()), rows = 3, m = ranks * rows, k = 8, n = 5;
  const auto a_at = [](int run, uint64_t row, uint64_t at) {
    return int((row * 3 + at * 2 + uint64_t(run)) % 5) - 2;
  };
  const auto b_at = [](uint64_t at, uint64_t column) { return int((at + column * 7) % 3) - 1; };
  Array<float> a(rows * k), b(k * n);
  for (uint64_t at = 0; at < k * n; ++at) b.data()[at] = float(b_at(at / n, at % n));
  ScheduleRun schedule(world, ag_matmul_p2p(form, "f32"),
                       {.buffers = {{"A", a.data()}, {"B", b.data()}},  // C is the schedule's own
                        .params = {{"M", int64_t(m)}, {"K", int64_t(k)}, {"N", int64_t(n)}},
                        .mover = mover},
                       on_cuda());
  for (int run = 0; run < 2; ++run) {
    for (uint64_t at = 0; at < rows * k; ++at)
      a.data()[at] = float(a_at(run, uint64_t(world.rank()) * rows + at / k, at % k));
    world.barrier();  // ce_get: a peer may still read the old data
    schedule.run();
    schedule.synchronize();
    const float* const c = static_cast<const float*>(schedule.buffer("C"));
    for (uint64_t at = 0; at < m * n; ++at) {
      int expected = 0;
      for (uint64_t i = 0; i < k; ++i) expected += a_at(run, at / n, i) * b_at(i, at % n);
      if (c[at] != float(expected))
        return fmt::format("{}: run {}, element {} is {}, not {}", form.text(), run, at, c[at], expected);
    }
    world.barrier();
  }
  return "good";
}

/// Runs plans of thread blocks on two streams, beside a matrix product.
std::string launches(World& world, bool replayed) {
  const uint64_t ranks = uint64_t(world.ranks()), rank = uint64_t(world.rank()), m = 6, k = 8, n = 5;
  const auto block_plan = [ranks](const char* name) {
    return dsl::build(name, {{"ranks", std::to_string(ranks)}}).compile().plan;
  };
  const auto a_at = [](int run, uint64_t row, uint64_t at) {
    return int((row * 3 + at * 2 + uint64_t(run)) % 5) - 2;
  };
  const auto b_at = [](uint64_t at, uint64_t column) { return int((at + column * 7) % 3) - 1; };
  Array<float> a(m * k), b(k * n), g(ranks * m * k), c(m * n), d(m * n);
  for (uint64_t at = 0; at < k * n; ++at) b.data()[at] = float(b_at(at / n, at % n));
  ScheduleRun schedule(
      world, allgather_beside_matmul(),
      {.buffers = {{"A", a.data()}, {"B", b.data()}, {"G", g.data()}, {"C", c.data()}, {"D", d.data()}},
       .params = {{"m", int64_t(m)}, {"k", int64_t(k)}, {"n", int64_t(n)}},
       .plans = {{"gather", block_plan("allgather_direct")}, {"reduce", block_plan("allreduce_one_shot")}}},
      on_cuda());
  const Enqueued enqueued(schedule, replayed);
  for (int run = 0; run < runs; ++run) {
    for (uint64_t at = 0; at < m * k; ++at) a.data()[at] = float(a_at(run, rank * m + at / k, at % k));
    enqueued.run();
    schedule.synchronize(enqueued.stream());
    world.barrier();  // a peer's next run writes into this rank's G
    for (uint64_t at = 0; at < ranks * m * k; ++at)
      if (g.data()[at] != float(a_at(run, at / k, at % k)))
        return fmt::format("run {}: element {} of G is {}", run, at, g.data()[at]);
    for (uint64_t at = 0; at < m * n; ++at) {
      std::vector<int> products;
      int sum = 0;
      for (uint64_t of = 0; of < ranks; ++of) {
        int& dot = products.emplace_back(0);
        for (uint64_t i = 0; i < k; ++i) dot += a_at(run, of * m + at / n, i) * b_at(i, at % n);
        sum += dot;
      }
      if (c.data()[at] != float(products[rank]) || d.data()[at] != float(sum))
        return fmt::format("run {}: element {} is {} in C and {} in D, not {} and {}", run, at, c.data()[at],
                           d.data()[at], products[rank], sum);
    }
    world.barrier();
  }
  return "good";
}

/// Exchanges boxes of any form on two streams, `times` times.
std::string exchanged(World& world, const Exchange& of, Mover mover, int times, bool replayed) {
  const uint64_t rank = uint64_t(world.rank()), ranks = uint64_t(world.ranks());
  Array<uint8_t> x(of.in_bytes(ranks)), y(of.out_bytes(ranks));
  ScheduleRun schedule(world, exchange(uint32_t(ranks), of.dtype, {mover}),
                       {.buffers = {{"X", x.data()}, {"Y", y.data()}}, .params = of.params()}, on_cuda());
  const Enqueued enqueued(schedule, replayed);
  for (int run = 0; run < times; ++run) {
    const std::vector<uint8_t> in = exchange_input(of, run, rank, ranks);
    std::copy(in.begin(), in.end(), x.data());
    enqueued.run();
    schedule.synchronize(enqueued.stream());
    const std::vector<uint8_t> expected = exchange_output(of, run, rank, ranks);
    const auto [wrong, right] = std::mismatch(y.data(), y.data() + expected.size(), expected.begin());
    if (right != expected.end())
      return fmt::format("exchange of {} via {}: run {}, byte {} is {}, not {}", dtype_name(of.dtype),
                         schedule::mover_names[size_t(mover)], run, wrong - y.data(), *wrong, *right);
  }
  world.barrier();  // peers may still read this rank's memory
  return "good";
}

/// Runs the schedules of bench/overlap, each in separate memory.
template <class Expected>
std::string multiply(World& world, const Plan& plan, const std::string& form, uint64_t m, uint64_t k,
                     uint64_t n, const std::function<int(uint64_t)>& a_at,
                     const std::function<int(uint64_t)>& b_at, const Expected& expected) {
  ScheduleRun schedule(world, plan, {.params = {{"M", int64_t(m)}, {"K", int64_t(k)}, {"N", int64_t(n)}}},
                       on_cuda());
  const auto fill = [&](const char* tensor, const std::function<int(uint64_t)>& value) {
    bf16* const to = static_cast<bf16*>(schedule.buffer(tensor));
    for (uint64_t at = 0; at < schedule.bytes(tensor) / 2; ++at) to[at] = from_float<bf16>(float(value(at)));
  };
  fill("A", a_at);
  fill("B", b_at);
  world.barrier();
  for (int run = 0; run < 3; ++run) schedule.run();
  schedule.synchronize();
  const bf16* const c = static_cast<const bf16*>(schedule.buffer("C"));
  for (uint64_t at = 0; at < schedule.bytes("C") / 2; ++at) {
    if (widen(c[at]) != float(expected(at / n, at % n)))
      return fmt::format("{} {}: element {} is {}, not {}", plan.name, form, at, widen(c[at]),
                         expected(at / n, at % n));
  }
  world.barrier();  // peers may still read this rank's memory
  return "good";
}

std::string overlapped(World& world) {
  const uint64_t ranks = uint64_t(world.ranks()), rank = uint64_t(world.rank()), rows = 3, deep = 4, n = 5;
  const auto a_at = [](uint64_t row, uint64_t at) { return int((row * 3 + at * 2) % 5) - 2; };
  const auto b_at = [](uint64_t at, uint64_t column) { return int((at + column * 7) % 3) - 1; };
  const auto dot = [&](uint64_t row, uint64_t column, uint64_t last) {
    int sum = 0;
    for (uint64_t at = 0; at < last; ++at) sum += a_at(row, at) * b_at(at, column);
    return sum;
  };
  for (const overlap::Form& form : overlap::allgather_matmul_forms()) {
    const std::string said = multiply(
        world, overlap::allgather_matmul(uint32_t(ranks), form), form.name(), ranks * rows, deep, n,
        [&](uint64_t at) { return a_at(rank * rows + at / deep, at % deep); },
        [&](uint64_t at) { return b_at(at / n, at % n); },
        [&](uint64_t row, uint64_t column) { return dot(row, column, deep); });
    if (said != "good") return said;
  }
  for (const overlap::Form& form : overlap::matmul_reduce_scatter_forms()) {
    const std::string said = multiply(
        world, overlap::matmul_reduce_scatter(uint32_t(ranks), form), form.name(), ranks * rows, deep * ranks,
        n, [&](uint64_t at) { return a_at(at / deep, rank * deep + at % deep); },
        [&](uint64_t at) { return b_at(rank * deep + at / n, at % n); },
        [&](uint64_t row, uint64_t column) { return dot(rank * rows + row, column, deep * ranks); });
    if (said != "good") return said;
  }
  return "good";
}

class FakeSchedules : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, FakeSchedules, testing::Values(1, 2, 4), testing::PrintToStringParamName());

TEST_P(FakeSchedules, EveryFormOverStreams) {
  // Ranks that are threads and share a GPU would share its default stream, too.
  CHORALE_NEEDS_GPUS(GetParam());
  const RankBody body = [](World& world) {
    for (const Mover mover : movers) {
      for (const Form& form : forms()) {
        for (const uint64_t n : {uint64_t(3), uint64_t(5000)})
          for (const bool replayed : {false, true})
            if (const std::string said = allgather(world, form, mover, n, replayed); said != "good")
              return said;
        if (const std::string said = ag_matmul(world, form, mover); said != "good") return said;
      }
    }
    return std::string("good");
  };
  expect_good(on_processes(GetParam(), body));
  expect_good(on_threads(GetParam(), body));
}

TEST_P(FakeSchedules, ARankMayBeLate) {
  CHORALE_NEEDS_GPUS(GetParam());
  expect_good(on_processes(GetParam(), [](World& world) {
    for (const Mover mover : movers)
      for (const bool replayed : {false, true})
        if (const std::string said =
                allgather(world, {Order::rotated, Style::two, 1}, mover, 5000, replayed, true);
            said != "good")
          return said;
    return std::string("good");
  }));
}

TEST_P(FakeSchedules, RunReturnsWhileAFunctionGoesOn) {
  CHORALE_NEEDS_GPUS(GetParam());
  for (const Mover mover : movers)
    expect_good(on_processes(
        GetParam(), [&](World& world) { return run_returns_while_a_function_goes_on(world, mover); }));
}

TEST_P(FakeSchedules, BoxesOfAnyForm) {
  CHORALE_NEEDS_GPUS(GetParam());
  const RankBody body = [](World& world) {
    for (const Mover mover : {Mover::ce_put, Mover::ce_get, Mover::plan})
      for (const Exchange& of :
           {Exchange{DType::i32, 5, 6, 7}, Exchange{DType::u8, 4, 5, 131}, Exchange{DType::bf16, 35, 64, 66}})
        for (const bool replayed : {false, true})
          if (const std::string said = exchanged(world, of, mover, replayed ? 20 : 3, replayed);
              said != "good")
            return said;
    return std::string("good");
  };
  expect_good(on_processes(GetParam(), body));
  expect_good(on_threads(GetParam(), body));
}

TEST_P(FakeSchedules, MoreStreamsThanQueues) {
  CHORALE_NEEDS_GPUS(GetParam());
  expect_good(on_processes(GetParam(), [](World& world) {
    for (const Mover mover : movers)
      for (const bool graph : {false, true})
        if (const std::string said = exchanged_on_many_streams(world, mover, 1000, graph); said != "good")
          return said;
    return std::string("good");
  }));
}

TEST_P(FakeSchedules, EveryFormOfTheBenchmark) {
  CHORALE_NEEDS_GPUS(GetParam());
  expect_good(on_processes(GetParam(), overlapped));
}

TEST_P(FakeSchedules, LaunchesBesideAMatmul) {
  CHORALE_NEEDS_GPUS(GetParam());
  const RankBody body = [](World& world) {
    const std::string said = launches(world, false);
    return said == "good" ? launches(world, true) : said;
  };
  expect_good(on_processes(GetParam(), body));
  expect_good(on_threads(GetParam(), body));
}

/// Rank 0 computes with the arrived data while the next exchange waits for rank 1. Rank 1 starts it only
/// after the computation has begun.
TEST(FakeScheduleWaits, AreForTheirGroupAlone) {
  CHORALE_NEEDS_GPUS(2);
  struct Held {
    std::mutex mutex;
    std::condition_variable changed;
    int begun = 0, held = 0;  ///< runs
    bool in_vain = false;
  };
  const auto begin = [](void* data) {
    Held& held = *static_cast<Held*>(data);
    const std::lock_guard lock(held.mutex);
    ++held.begun;
    held.changed.notify_all();
  };
  const auto hold = [](void* data) {
    Held& held = *static_cast<Held*>(data);
    std::unique_lock lock(held.mutex);
    ++held.held;
    held.in_vain |=
        !held.changed.wait_for(lock, std::chrono::seconds(10), [&] { return held.begun >= held.held; });
  };
  for (const Mover mover : movers) {
    for (const bool replayed : {false, true}) {
      Held held;
      expect_good(on_threads(2, [&](World& world) {
        const auto enqueue = [&](void (*function)(void*)) {
          return [&held, function](const HostCall& call) {
            cuda::check(cudaLaunchHostFunc(static_cast<cudaStream_t>(call.stream), function, &held),
                        "a function of the host");
          };
        };
        ScheduleArguments arguments{.mover = mover};
        arguments.functions["hold"] = enqueue(hold);
        arguments.functions["consume"] = [](const HostCall&) {};
        if (world.rank() == 0) arguments.functions["consume"] = enqueue(begin);
        ScheduleRun schedule(world, compute_beside_an_exchange(), arguments, on_cuda());
        const Enqueued enqueued(schedule, replayed);
        for (int run = 0; run < runs; ++run) enqueued.run();
        schedule.synchronize(enqueued.stream());
        world.barrier();
        const std::lock_guard lock(held.mutex);
        if (held.in_vain)
          return fmt::format("via {} rank 0 has waited for the next exchange",
                             schedule::mover_names[size_t(mover)]);
        return held.begun == runs ? std::string("good") : fmt::format("{} runs have ended", held.begun);
      }));
    }
  }
}

TEST(FakeScheduleFaults, APeerThatNeverRunsEndsTheWait) {
  expect_good(on_processes(2, [](World& world) {
    return wait_for_who_never_runs(world, Mover::ce_put, "take of 'credit of t1");
  }));
}

TEST(FakeScheduleFaults, APeerThatAbortsOrDiesEndsTheWait) { expect_ends_of_runs(); }

/// A call without bytes has nothing to bind, even during a capture.
TEST(FakeExecutor, ACallWithoutBytesMayBeCaptured) {
  expect_good(on_processes(2, [](World& world) {
    const Plan plan = dsl::build("allreduce_one_shot", {{"ranks", "2"}}).compile().plan;
    Executor executor(world, on_cuda());
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    const std::string said = thrown([&] { executor.execute(plan, {.bytes = 0}, stream); });
    const std::string more = thrown([&] { executor.execute(plan, {.bytes = 64}, stream); });
    cudaStreamEndCapture(stream, &graph);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    if (said != "nothing") return said;
    return more == "usage: a stream is captured" ? std::string("good") : more;
  }));
}

/// Kernels would fault in that memory, and the process could not use CUDA any more.
TEST(FakeScheduleFaults, MemoryOfTheHostThatOneRankGivesIsAnErrorOfAll) {
  const RankBody body = [](World& world) {
    Array<int32_t> in(3);
    std::vector<int32_t> pageable(3);
    ScheduleArguments arguments{.buffers = {{"t0", world.rank() == 1 ? pageable.data() : in.data()}},
                                .params = {{"n", 3}}};
    arguments.functions["produce"] = arguments.functions["consume"] = [](const HostCall&) {};
    const std::string said = thrown([&] {
      ScheduleRun(world, allgather_p2p({Order::rotated, Style::two, 1}), arguments, on_cuda());
    });
    const std::string what = "CUDA does not know the buffer of 't0' at ";
    return said.starts_with((world.rank() == 1 ? "usage: " : "other: rank 1: ") + what) ? std::string("good")
                                                                                        : said;
  };
  expect_good(on_processes(2, body));
}

/// The application may have handled the earlier error.
TEST(FakeScheduleFaults, WhatAnEarlierCallHasLeftIsNoFailureOfARun) {
  const Exchange of{DType::i32, 5, 6, 7};
  const RankBody body = [&](World& world) {
    for (const Mover mover : {Mover::ce_get, Mover::plan}) {
      ScheduleRun schedule(world, exchange(2, of.dtype, {mover}), {.params = of.params()}, on_cuda());
      fake::last_error() = cudaErrorMemoryAllocation;
      const std::string said = thrown([&] {
        schedule.run();
        schedule.synchronize();
      });
      if (said != "nothing") return said;
      world.barrier();
    }
    return std::string("good");
  };
  expect_good(on_processes(2, body));
  expect_good(on_threads(2, body));
}

}  // namespace
}  // namespace chorale::test
