// Tests host schedules on GPUs: AllgatherP2p, AG_matmul_P2p, and launches of plans, run one by one and from a
// graph, and a peer that never comes.
//
//   schedules_test [--share-gpus] [--gtest_filter=...]
//
// With --share-gpus, if there are fewer GPUs than ranks, several ranks share one, as processes that take
// turns on it. Threads of one process cannot share it, because each has streams that wait for the other's.
// CUDA may wait for all streams when it makes a graph or cuBLAS's workspace, and a shared queue may hold up
// what the other rank waits for.

#include "tests/unit/schedule/schedules.hpp"

#include <cmath>
#include <cstring>

#include "chorale/dsl/registry.hpp"
#include "chorale/schedule.hpp"
#include "tests/cuda/many_streams.hpp"
#include "tests/cuda/schedule_work.hpp"
#include "tests/unit/schedule/exchange.hpp"
#include "tests/unit/schedule/function_cases.hpp"

namespace chorale::test {
namespace {

using cuda::check;
using schedule::Mover;

constexpr int runs = 5;
constexpr Mover movers[] = {Mover::ce_put, Mover::ce_get};

/// Calls with(mover, form) with all forms via copy engines. Binding takes longer with more ranks, so from
/// eight ranks on each form has one mover.
/// \return the first result that is not "good", or "good"
template <class With>
std::string each_form(int ranks, const With& with) {
  const std::vector<Form> all = forms();
  for (size_t mover = 0; mover < std::size(movers); ++mover) {
    for (size_t form = 0; form < all.size(); ++form) {
      if (ranks >= 8 && form % std::size(movers) != mover) continue;
      std::string said;
      try {
        said = with(movers[mover], all[form]);
      } catch (const std::exception& error) {
        said = error.what();
      }
      if (said != "good")
        return fmt::format("{} via {}: {}", all[form].text(), schedule::mover_names[size_t(movers[mover])],
                           said);
    }
  }
  return "good";
}

template <class T>
class Array {
 public:
  explicit Array(uint64_t n) : n_(n) { check(cudaMalloc(&data_, n * sizeof(T) + 16), "cudaMalloc"); }
  Array(const Array&) = delete;
  ~Array() { cudaFree(data_); }
  T* data() const { return static_cast<T*>(data_); }
  uint64_t bytes() const { return n_ * sizeof(T); }
  void set(const std::vector<T>& values) const {
    check(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), "H2D");
    check(cudaStreamSynchronize(nullptr), "H2D");
  }
  std::vector<T> get() const {
    std::vector<T> values(n_);
    check(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost), "D2H");
    return values;
  }

 private:
  uint64_t n_;
  void* data_ = nullptr;
};

/// Runs with new data, without the host waiting between the runs. In a graph, functions copy from and to one
/// place, which other work fills and reads.
std::string allgather(World& world, const Form& form, Mover mover, uint64_t n, bool graph,
                      bool late = false) {
  const uint64_t all = n * uint64_t(world.ranks());
  const int rank = world.rank();
  Array<int32_t> in(n), out(all), fed(n * runs), kept(all * runs), consumed(all * runs), next(n), last(all);
  std::vector<int32_t> values(n * runs);
  for (uint64_t at = 0; at < values.size(); ++at) values[at] = value_at(int(at / n), rank, at % n);
  fed.set(values);
  Stream stream;
  OnStreams on_streams{.from = next.data(), .to = last.data(), .main = stream.get()};
  ScheduleRun schedule(world, allgather_p2p(form),
                       {.buffers = {{"t0", in.data()}, {"t1", out.data()}},
                        .params = {{"n", int64_t(n)}},
                        .functions = on_streams.functions(world, n),
                        .mover = mover},
                       on_cuda());
  const auto copy = [&](int32_t* to, const int32_t* from, uint64_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream.get()), "a copy");
  };
  if (graph) stream.capture([&] { schedule.run(stream.get()); });
  for (uint64_t run = 0; run < runs; ++run) {
    if (late && int(run) % world.ranks() == rank) delay(stream.get());
    if (graph) {
      copy(next.data(), fed.data() + run * n, in.bytes());
      stream.replay();
      copy(consumed.data() + run * all, last.data(), out.bytes());
    } else {
      on_streams.from = fed.data() + run * n;
      on_streams.to = consumed.data() + run * all;
      schedule.run(stream.get());
    }
    copy(kept.data() + run * all, out.data(), out.bytes());
  }
  schedule.synchronize(stream.get());
  const std::vector<int32_t> got = kept.get(), seen = consumed.get();
  world.barrier();  // peers read this rank's memory
  const int called = graph ? 1 : runs;
  if (!on_streams.wrong.empty()) return on_streams.wrong;
  if (on_streams.produced != called || on_streams.consumed != called)
    return fmt::format("functions are called {} and {} times", on_streams.produced, on_streams.consumed);
  uint64_t at = 0;  // avoids divisions, because there are tens of millions
  for (int run = 0; run < runs; ++run) {
    for (int of = 0; of < world.ranks(); ++of) {
      for (uint64_t index = 0; index < n; ++index, ++at) {
        const int32_t expected = value_at(run, of, index);
        if (got[at] != expected || seen[at] != expected)
          return fmt::format("n = {}{}: run {}, element {} of rank {} is {}, and {} for a function, not {}",
                             n, graph ? ", graph" : "", run, index, of, got[at], seen[at], expected);
      }
    }
  }
  return "good";
}

/// Return whole numbers that are small enough for f32 to be exact in any order of summation.
int a_at(int run, uint64_t row, uint64_t at) { return int((row * 3 + at * 5 + uint64_t(run) * 7) % 9) - 4; }
int b_at(uint64_t at, uint64_t column) { return int((at * 2 + column * 7) % 9) - 4; }

/// Returns any number in [-1, 1).
float random_at(uint64_t row, uint64_t column) {
  uint64_t bits = (row << 32 | column) * 0x9e3779b97f4a7c15;
  bits = (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9;
  return float(bits >> 40) * 0x1p-23f - 1;
}

/// Gives the tolerance. Sums of random numbers are about sqrt(k) / 3: 60 for k = 32768. There an f32 has 4e-6
/// between its values, and k roundings, to either side, make about 1e-3. One addend too many or too few is
/// 1/4. So 1e-2 accepts every right sum for every k here, and a wrong sum only by chance.
constexpr double near_enough = 1e-2;

std::string ag_matmul(World& world, const Form& form, Mover mover, uint64_t m, uint64_t k, uint64_t n,
                      bool graph, bool random = false) {
  const uint64_t ranks = uint64_t(world.ranks()), rows = m / ranks, first = uint64_t(world.rank()) * rows;
  const auto a_of = [&](int run, uint64_t row, uint64_t at) {
    return random ? random_at(row + uint64_t(run) * m, at) : float(a_at(run, row, at));
  };
  Array<float> a(rows * k), b(k * n), c(m * n);
  std::vector<float> b_values(k * n);
  for (uint64_t at = 0; at < b_values.size(); ++at)
    b_values[at] = random ? random_at(at / n + (uint64_t(1) << 31), at % n) : float(b_at(at / n, at % n));
  b.set(b_values);
  ScheduleRun schedule(world, ag_matmul_p2p(form, "f32"),
                       {.buffers = {{"A", a.data()}, {"B", b.data()}, {"C", c.data()}},
                        .params = {{"M", int64_t(m)}, {"K", int64_t(k)}, {"N", int64_t(n)}},
                        .mover = mover},
                       on_cuda());
  Stream stream;
  if (graph) stream.capture([&] { schedule.run(stream.get()); });
  std::vector<float> mine(rows * k);
  for (int run = 0; run < 2; ++run) {
    for (uint64_t at = 0; at < mine.size(); ++at) mine[at] = a_of(run, first + at / k, at % k);
    a.set(mine);
    if (graph) {
      stream.replay();
    } else {
      schedule.run(stream.get());
    }
    schedule.synchronize(stream.get());
    const std::vector<float> got = c.get();
    // The test compares a few rows of every slice, with all of their columns. Whole numbers are exact in a
    // double, too.
    for (uint64_t row = uint64_t(world.rank()); row < m; row += std::max<uint64_t>(1, rows / 3)) {
      std::vector<double> expected(n);
      for (uint64_t i = 0; i < k; ++i) {
        const double left = a_of(run, row, i);
        for (uint64_t column = 0; column < n; ++column)
          expected[column] += left * double(b_values[i * n + column]);
      }
      for (uint64_t column = 0; column < n; ++column) {
        if (std::fabs(got[row * n + column] - expected[column]) <= (random ? near_enough : 0)) continue;
        return fmt::format("{}{} x {} x {}{}: run {}, row {}, column {} is {}, not {}",
                           random ? "random " : "", m, k, n, graph ? ", graph" : "", run, row, column,
                           got[row * n + column], expected[column]);
      }
    }
  }
  world.barrier();
  return "good";
}

/// Runs plans of thread blocks on two streams, beside a matrix product.
std::string launches(World& world, bool graph) {
  const int rank = world.rank(), ranks = world.ranks();
  const uint64_t m = 64, k = 96, n = 32;
  const auto block_plan = [ranks](const char* name) {
    return dsl::build(name, {{"ranks", std::to_string(ranks)}}).compile().plan;
  };
  Array<float> a(m * k), b(k * n), g(uint64_t(ranks) * m * k), c(m * n), d(m * n);
  std::vector<float> values(k * n);
  for (uint64_t at = 0; at < values.size(); ++at) values[at] = float(b_at(at / n, at % n));
  b.set(values);
  ScheduleRun schedule(
      world, allgather_beside_matmul(),
      {.buffers = {{"A", a.data()}, {"B", b.data()}, {"G", g.data()}, {"C", c.data()}, {"D", d.data()}},
       .params = {{"m", int64_t(m)}, {"k", int64_t(k)}, {"n", int64_t(n)}},
       .plans = {{"gather", block_plan("allgather_direct")}, {"reduce", block_plan("allreduce_one_shot")}}},
      on_cuda());
  Stream stream;
  if (graph) stream.capture([&] { schedule.run(stream.get()); });
  const auto row_of = [m](int of, uint64_t row) { return uint64_t(of) * m + row; };
  for (int run = 0; run < runs; ++run) {
    std::vector<float> mine(m * k);
    for (uint64_t at = 0; at < mine.size(); ++at) mine[at] = float(a_at(run, row_of(rank, at / k), at % k));
    a.set(mine);
    if (graph) {
      stream.replay();
    } else {
      schedule.run(stream.get());
    }
    schedule.synchronize(stream.get());
    const std::vector<float> gathered = g.get(), product = c.get(), summed = d.get();
    world.barrier();  // a peer's next run writes into this rank's G
    for (uint64_t at = 0; at < gathered.size(); ++at)
      if (gathered[at] != float(a_at(run, at / k, at % k)))
        return fmt::format("run {}{}: element {} of G is {}", run, graph ? ", graph" : "", at, gathered[at]);
    for (uint64_t at = 0; at < m * n; ++at) {
      std::vector<float> of_rank;
      float sum = 0;
      for (int other = 0; other < ranks; ++other) {
        int dot = 0;
        for (uint64_t i = 0; i < k; ++i) dot += a_at(run, row_of(other, at / n), i) * b_at(i, at % n);
        of_rank.push_back(float(dot));
        sum += float(dot);
      }
      if (product[at] != of_rank[size_t(rank)] || summed[at] != sum)
        return fmt::format("run {}{}: element {} of C is {}, not {}, and of D {}, not {}", run,
                           graph ? ", graph" : "", at, product[at], of_rank[size_t(rank)], summed[at], sum);
    }
  }
  return "good";
}

/// Exchanges boxes of any form on two streams, `times` times.
std::string exchanged(World& world, const Exchange& of, const std::vector<Mover>& via, int times,
                      bool graph) {
  const uint64_t rank = uint64_t(world.rank()), ranks = uint64_t(world.ranks());
  Array<uint8_t> x(of.in_bytes(ranks)), y(of.out_bytes(ranks));
  ScheduleRun schedule(world, exchange(uint32_t(ranks), of.dtype, via),
                       {.buffers = {{"X", x.data()}, {"Y", y.data()}}, .params = of.params()}, on_cuda());
  Stream stream;
  if (graph) stream.capture([&] { schedule.run(stream.get()); });
  for (int run = 0; run < times; ++run) {
    x.set(exchange_input(of, run, rank, ranks));
    if (graph) {
      stream.replay();
    } else {
      schedule.run(stream.get());
    }
    schedule.synchronize(stream.get());
    const std::vector<uint8_t> got = y.get(), expected = exchange_output(of, run, rank, ranks);
    const auto [wrong, right] = std::mismatch(got.begin(), got.end(), expected.begin());
    if (wrong != got.end())
      return fmt::format("exchange of {} {} x {} x {} via {}{}: run {}, byte {} is {}, not {}",
                         dtype_name(of.dtype), of.h, of.w, of.c, schedule::mover_names[size_t(via[0])],
                         graph ? ", graph" : "", run, wrong - got.begin(), *wrong, *right);
  }
  world.barrier();  // peers may still read this rank's memory
  return "good";
}

class Schedules : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Gpus, Schedules, testing::Values(1, 2, 4, 8), testing::PrintToStringParamName());

TEST_P(Schedules, AllgatherP2p) {
  CHORALE_NEEDS_GPUS(GetParam());
  const RankBody body = [](World& world) {
    return each_form(world.ranks(), [&world](Mover mover, const Form& form) {
      for (const uint64_t n : {uint64_t(4), uint64_t(1) << 21})
        for (const bool graph : {false, true})
          if (const std::string said = allgather(world, form, mover, n, graph); said != "good") return said;
      return std::string("good");
    });
  };
  expect_good(on_processes(GetParam(), body));
  if (!gpus_are_shared(GetParam())) expect_good(on_threads(GetParam(), body));
}

TEST_P(Schedules, AgMatmulP2p) {
  CHORALE_NEEDS_GPUS(GetParam());
  expect_good(on_processes(GetParam(), [](World& world) {
    const std::string said = each_form(world.ranks(), [&world](Mover mover, const Form& form) {
      const std::string eager = ag_matmul(world, form, mover, 1024, 512, 256, false);
      return eager == "good" ? ag_matmul(world, form, mover, 1024, 512, 256, true) : eager;
    });
    if (said != "good") return said;
    return ag_matmul(world, {Order::rotated, Style::two, 1}, Mover::ce_put, 4096, 4096, 1024, false);
  }));
}

TEST_P(Schedules, AgMatmulP2pOfRandomNumbers) {
  CHORALE_NEEDS_GPUS(GetParam());
  expect_good(on_processes(GetParam(), [](World& world) {
    const Form form{Order::rotated, Style::two, 1};
    for (const Mover mover : movers)
      if (const std::string said = ag_matmul(world, form, mover, 1024, 512, 256, false, true); said != "good")
        return said;
    return ag_matmul(world, form, Mover::ce_put, 4096, 4096, 1024, false, true);
  }));
}

TEST_P(Schedules, ARankMayBeLate) {
  CHORALE_NEEDS_GPUS(GetParam());
  expect_good(on_processes(GetParam(), [](World& world) {
    for (const Mover mover : movers)
      for (const bool graph : {false, true})
        if (const std::string said =
                allgather(world, {Order::rotated, Style::two, 1}, mover, 5000, graph, true);
            said != "good")
          return said;
    return std::string("good");
  }));
}

TEST_P(Schedules, BoxesOfAnyForm) {
  CHORALE_NEEDS_GPUS(GetParam());
  const RankBody body = [](World& world) {
    for (const std::vector<Mover>& via :
         {std::vector{Mover::ce_put}, std::vector{Mover::ce_get}, std::vector{Mover::plan},
          std::vector{Mover::ce_put, Mover::plan, Mover::ce_get}}) {
      for (const Exchange& of :
           {Exchange{DType::i32, 5, 6, 7}, Exchange{DType::u8, 4, 2, 3}, Exchange{DType::u8, 4, 5, 131},
            Exchange{DType::f64, 9, 3, 514}, Exchange{DType::bf16, 35, 64, 66},
            Exchange{DType::i32, 12, 130, 251}, Exchange{DType::u8, 4, 2, 300003}}) {
        const bool graph = of.h % 2 == 0;
        if (const std::string said = exchanged(world, of, via, runs, graph); said != "good") return said;
      }
    }
    return std::string("good");
  };
  expect_good(on_processes(GetParam(), body));
  if (!gpus_are_shared(GetParam())) expect_good(on_threads(GetParam(), body));
}

TEST_P(Schedules, AHundredReplays) {
  CHORALE_NEEDS_GPUS(GetParam());
  expect_good(on_processes(GetParam(), [](World& world) {
    for (const Mover mover : {Mover::ce_put, Mover::ce_get, Mover::plan}) {
      for (const Exchange& of : {Exchange{DType::u8, 4, 5, 131}, Exchange{DType::i32, 12, 65, 251}})
        if (const std::string said = exchanged(world, of, {mover}, 100, true); said != "good") return said;
    }
    return std::string("good");
  }));
}

/// The transfers are short or long.
TEST_P(Schedules, MoreStreamsThanQueues) {
  CHORALE_NEEDS_GPUS(GetParam());
  if (gpus_are_shared(GetParam())) GTEST_SKIP() << "ranks that take turns on a GPU take long";
  expect_good(on_processes(GetParam(), [](World& world) {
    const uint64_t most = world.ranks() <= 2 ? 1 << 20 : world.ranks() == 4 ? 1 << 15 : 1 << 14;
    for (const Mover mover : movers)
      for (const uint64_t n : {uint64_t(1000), most})
        for (const bool graph : {false, true})
          if (const std::string said = exchanged_on_many_streams(world, mover, n, graph); said != "good")
            return said;
    return std::string("good");
  }));
}

TEST_P(Schedules, LaunchesBesideAMatmul) {
  CHORALE_NEEDS_GPUS(GetParam());
  const RankBody body = [](World& world) {
    const std::string said = launches(world, false);
    return said == "good" ? launches(world, true) : said;
  };
  expect_good(on_processes(GetParam(), body));
  if (!gpus_are_shared(GetParam())) expect_good(on_threads(GetParam(), body));
}

TEST_P(Schedules, AgMatmulP2pAsLargeAsTheOriginal) {
  CHORALE_NEEDS_GPUS(GetParam());
  if (GetParam() == 1) GTEST_SKIP() << "one rank has nothing to gather";
  if (gpus_are_shared(GetParam())) GTEST_SKIP() << "a GPU need not have the memory of several ranks";
  expect_good(on_processes(GetParam(), [](World& world) {
    const Form form{Order::rotated, Style::two, 1};
    const std::string exact = ag_matmul(world, form, Mover::ce_put, 32768, 32768, 1024, false);
    return exact == "good" ? ag_matmul(world, form, Mover::ce_put, 32768, 32768, 1024, false, true) : exact;
  }));
}

TEST(ScheduleFaults, APeerThatNeverRunsEndsTheWait) {
  CHORALE_NEEDS_GPUS(2);
  expect_good(on_processes(2, [](World& world) {
    return wait_for_who_never_runs(world, Mover::ce_put, "take of 'credit of t1");
  }));
}

TEST(ScheduleFaults, APeerThatAbortsOrDiesEndsTheWait) {
  CHORALE_NEEDS_GPUS(2);
  expect_ends_of_runs();
}

TEST(ScheduleFaults, RunReturnsWhileAFunctionGoesOn) {
  CHORALE_NEEDS_GPUS(2);
  for (const Mover mover : {Mover::ce_put, Mover::ce_get})
    expect_good(
        on_processes(2, [&](World& world) { return run_returns_while_a_function_goes_on(world, mover); }));
}

/// The functions give the same bits as the CPU's if they do not round.
TEST(ScheduleFunctions, BuiltInOnesGiveWhatTheyMean) {
  CHORALE_NEEDS_GPUS(1);
  expect_good(on_processes(1, [](World& world) {
    const FunctionCases cases = function_cases();
    std::map<std::string, Bytes> here, there;
    Config config = Config::load();
    config.backend = std::string("cpu");
    const std::string said = cases.run(
        world, config, [](void* to, const void* from, uint64_t bytes) { std::memcpy(to, from, bytes); },
        here);
    if (said != "good") return "CPU: " + said;
    const std::string also = cases.run(
        world, on_cuda(),
        [](void* to, const void* from, uint64_t bytes) {
          check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
          check(cudaStreamSynchronize(nullptr), "cudaMemcpy");
        },
        there);
    if (also != "good") return "CUDA: " + also;
    for (const auto& [output, values] : here)
      if (cases.exactly(output) && values != there[output])
        return output + ": CUDA has other bits than the CPU";
    return std::string("good");
  }));
}

}  // namespace
}  // namespace chorale::test
