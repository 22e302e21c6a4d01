// Measures the cost of interpreting plans on GPUs. It runs the hand-written packet all-reduces and the plans
// of the same algorithms in turns, with the same blocks, threads and packet form, in CUDA graphs, in one run.
// See README.md.

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chorale/dsl.hpp>
#include <chorale/executor.hpp>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "allreduce.hpp"
#include "bench/common/processes.hpp"
#include "bench/common/timing.hpp"
#include "executor/cuda/device/device_memory.hpp"
#include "executor/cuda/device/error.hpp"
#include "executor/cuda/device/host_words.hpp"
#include "executor/cuda/memory/peer_memory.hpp"
#include "executor/cuda/memory/pool.hpp"

namespace chorale {
namespace {

using cuda::check;

constexpr unsigned calls = 50;          ///< the number of calls in a graph
constexpr unsigned graphs_in_turn = 4;  ///< the number of graphs that are timed, after one that warms up
constexpr double goal = 1.10;           ///< the limit of plan / hand-written time, at every size

struct Options {
  int ranks = 0, blocks = 8, threads = int(handwritten::most_threads), turns = 5;
  std::string algorithm = "both", dtype = "bf16";
  std::vector<uint64_t> sizes = {1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};
};

struct Algorithm {
  std::string name;
  uint64_t (*scratch_bytes)(uint32_t ranks, uint64_t capacity);
  decltype(&handwritten::launch_one_shot) launch;
};

const Algorithm algorithms[] = {
    {"one_shot", handwritten::one_shot_scratch_bytes, handwritten::launch_one_shot},
    {"two_shot", handwritten::two_shot_scratch_bytes, handwritten::launch_two_shot},
};

// -- Data

/// Returns whole numbers whose sums over 8 ranks are exact in bf16, in any order.
float element(int rank, uint64_t at) { return float(int((at * 31 + uint64_t(rank) * 17) % 61) - 30); }

/// Encodes the values. bf16 is the upper half of f32, which is exact for these numbers.
std::vector<char> encoded(const std::vector<float>& values, DType dtype) {
  const uint64_t size = dtype_size(dtype);
  std::vector<char> bytes(values.size() * size);
  for (size_t at = 0; at < values.size(); ++at) {
    const char* const from = reinterpret_cast<const char*>(&values[at]) + sizeof(float) - size;
    std::memcpy(bytes.data() + at * size, from, size);
  }
  return bytes;
}

std::vector<float> input_of(int rank, uint64_t elements) {
  std::vector<float> values(elements);
  for (uint64_t at = 0; at < elements; ++at) values[at] = element(rank, at);
  return values;
}

std::vector<float> sums_of(int ranks, uint64_t elements) {
  std::vector<float> values(elements);
  for (uint64_t at = 0; at < elements; ++at) {
    for (int rank = 0; rank < ranks; ++rank) values[at] += element(rank, at);
  }
  return values;
}

// -- Timing

/// Holds the scratch and counters of one hand-written all-reduce, for messages of one size.
class ByHand {
 public:
  /// Collective.
  ByHand(World& world, cuda::Pool& pool, AbortWord* abort, const Options& options, const Algorithm& algorithm,
         uint64_t bytes)
      : scratch_(pool.take(algorithm.scratch_bytes(uint32_t(world.ranks()), bytes))),
        epochs_(uint64_t(options.blocks) * sizeof(uint64_t), "the epochs of blocks") {
    with.rank = uint32_t(world.rank());
    with.ranks = uint32_t(world.ranks());
    with.blocks = uint32_t(options.blocks);
    with.threads = uint32_t(options.threads);
    with.capacity = bytes;
    for (int rank = 0; rank < world.ranks(); ++rank) with.scratch[rank] = scratch_.at(rank);
    with.epochs = reinterpret_cast<uint64_t*>(epochs_.data());
    with.deadline.shared = abort;
    with.deadline.ticks = uint64_t(world.timeout().count());
  }

  handwritten::AllReduce with;

 private:
  cuda::Pool::Block scratch_;
  cuda::DeviceMemory epochs_;
};

class Rank {
 public:
  Rank(World& world, const Options& options, int device)
      : world_(world), options_(options), dtype_(options.dtype == "f32" ? DType::f32 : DType::bf16) {
    check(cudaSetDevice(device), "cudaSetDevice");
    Config config = Config::load();
    config.backend = "cuda";
    executor_.emplace(world_, config);
    imports_.emplace(world_);
    pool_.emplace(world_, *imports_);
    abort_ = cuda::HostMapping(world_.abort_word(), sizeof(AbortWord));
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    check(cudaEventCreate(&start_), "an event");
    check(cudaEventCreate(&stop_), "an event");
  }

  /// Counts the wrong elements, and says whether the plan misses the goal, over all sizes.
  struct Verdict {
    uint64_t wrong = 0;
    bool slow = false;
  };
  Verdict run(const Algorithm& algorithm) {
    const Plan plan = plan_of(algorithm);
    Verdict verdict;
    for (const uint64_t bytes : options_.sizes) {
      const Times times = measure(algorithm, plan, bytes, verdict.wrong);
      verdict.slow |= times.plan > goal * times.by_hand;
      if (world_.rank() != 0) continue;
      std::printf("%-8s  %10llu  %12.2f  %8.2f  %17.3f\n", algorithm.name.c_str(),
                  static_cast<unsigned long long>(bytes), times.by_hand, times.plan,
                  times.plan / times.by_hand);
      std::fflush(stdout);
    }
    return verdict;
  }

 private:
  /// Holds the microseconds of a call: this rank's mean, then the largest of all ranks.
  struct Times {
    double by_hand = 0, plan = 0;
  };

  Plan plan_of(const Algorithm& algorithm) const {
    dsl::Compiled compiled =
        dsl::build("allreduce_" + algorithm.name, {{"ranks", std::to_string(options_.ranks)},
                                                   {"instances", std::to_string(options_.blocks)}})
            .compile();
    if (!compiled.ok()) throw UsageError(render(compiled.plan, compiled.diagnostics));
    compiled.plan.threads_per_block = uint64_t(options_.threads);
    for (const Gpu& gpu : compiled.plan.gpus) {
      if (gpu.threadblocks.size() == size_t(options_.blocks)) continue;
      throw UsageError("the plan has " + std::to_string(gpu.threadblocks.size()) + " thread blocks, not " +
                       std::to_string(options_.blocks));
    }
    return compiled.plan;
  }

  Times measure(const Algorithm& algorithm, const Plan& plan, uint64_t bytes, uint64_t& wrong) {
    const uint64_t elements = bytes / dtype_size(dtype_);
    const std::vector<char> in = encoded(input_of(world_.rank(), elements), dtype_);
    const std::vector<char> sums = encoded(sums_of(world_.ranks(), elements), dtype_);
    const cuda::DeviceMemory input(bytes, "the input"), output(bytes, "the output");
    check(cudaMemcpy(input.data(), in.data(), bytes, cudaMemcpyDefault), "the input");

    const ByHand by_hand(world_, *pool_, abort_.device(world_.abort_word()), options_, algorithm, bytes);
    // The kernels use LL16, too. Peers do not reach `in` and `out`, so the plan binds to any memory.
    const Arguments arguments{.in = input.data(),
                              .out = output.data(),
                              .bytes = bytes,
                              .dtype = dtype_,
                              .packet = PacketForm::ll16};
    executor_->prepare(plan, arguments);
    bench::Graph kernels(stream_, calls, [&](cudaStream_t) {
      check(algorithm.launch(by_hand.with, input.data(), output.data(), bytes, dtype_, stream_),
            "a hand-written kernel");
    });
    bench::Graph plans(stream_, calls, [&](cudaStream_t) { executor_->execute(plan, arguments, stream_); });

    Times times;
    for (int turn = 0; turn < options_.turns; ++turn) {
      times.by_hand += timed(kernels) / options_.turns;
      times.plan += timed(plans) / options_.turns;
    }
    uint64_t here = 0;
    for (bench::Graph* const graph : {&kernels, &plans}) here += wrong_elements(*graph, output, sums);
    wrong += uint64_t(over_ranks(double(here), [](double a, double b) { return a + b; }));
    const auto larger = [](double a, double b) { return std::max(a, b); };
    times = {over_ranks(times.by_hand, larger), over_ranks(times.plan, larger)};
    world_.barrier();  // until then other ranks may write to this rank's scratch
    return times;
  }

  void finish() {
    executor_->synchronize(stream_);  // hand-written kernels raise the same abort word, so it throws for them
  }

  double timed(bench::Graph& graph) {
    graph.launch();
    finish();
    world_.barrier();
    check(cudaEventRecord(start_, stream_), "an event");
    for (unsigned time = 0; time < graphs_in_turn; ++time) graph.launch();
    check(cudaEventRecord(stop_, stream_), "an event");
    finish();
    world_.barrier();
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start_, stop_), "the time between events");
    return double(milliseconds) * 1e3 / (calls * graphs_in_turn);
  }

  uint64_t wrong_elements(bench::Graph& graph, const cuda::DeviceMemory& output,
                          const std::vector<char>& sums) {
    check(cudaMemset(output.data(), 0xff, sums.size()), "an output that is not the sum");
    check(cudaStreamSynchronize(nullptr), "an output that is not the sum");
    world_.barrier();
    graph.launch();
    finish();
    std::vector<char> got(sums.size());
    check(cudaMemcpy(got.data(), output.data(), got.size(), cudaMemcpyDefault), "the output");
    uint64_t wrong = 0;
    const uint64_t size = dtype_size(dtype_);
    for (uint64_t at = 0; at < got.size(); at += size) wrong += std::memcmp(&got[at], &sums[at], size) != 0;
    return wrong;
  }

  template <class Combine>
  double over_ranks(double mine, const Combine& combine) {
    double all = 0;
    for (const std::vector<std::byte>& of : world_.allgather(std::as_bytes(std::span(&mine, 1)))) {
      double value = 0;
      std::memcpy(&value, of.data(), sizeof value);
      all = combine(all, value);
    }
    return all;
  }

  World& world_;
  const Options& options_;
  const DType dtype_;
  std::optional<Executor> executor_;
  std::optional<cuda::Imports> imports_;
  std::optional<cuda::Pool> pool_;
  cuda::HostMapping abort_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

// -- Processes

int run_rank(const Options& options, const std::string& address, int rank) {
  try {
    World world = World::join(address, rank, options.ranks, Config::load().join());
    int result = 0;
    try {
      Rank one(world, options, rank);
      if (rank == 0) {
        std::printf("all-reduce, %s sum, %d ranks, %d blocks of %d threads, LL16, graphs of %u calls\n",
                    options.dtype.c_str(), options.ranks, options.blocks, options.threads, calls);
        std::printf("%-8s  %10s  %12s  %8s  %17s\n", "", "bytes", "hand-written", "plan",
                    "plan/hand-written");
      }
      for (const Algorithm& algorithm : algorithms) {
        if (options.algorithm != "both" && options.algorithm != algorithm.name) continue;
        const Rank::Verdict verdict = one.run(algorithm);
        if (rank == 0 && verdict.wrong) {
          std::printf("%llu elements are wrong\n", static_cast<unsigned long long>(verdict.wrong));
        }
        if (rank == 0 && verdict.slow) std::printf("%s: over %.2f\n", algorithm.name.c_str(), goal);
        result = std::max(result, verdict.wrong ? 2 : verdict.slow ? 1 : 0);
      }
      world.barrier();
    } catch (const std::exception& error) {
      world.abort(error.what());  // the other ranks may wait for this one
      throw;
    }
    return result;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return 3;
  }
}

/// Runs `body` in a separate process, which exits with its result. CUDA does not survive a fork.
template <class Body>
pid_t in_process(const Body& body) {
  const pid_t process = fork();
  if (process != 0) return process;
  const int result = body();
  std::fflush(nullptr);
  _exit(result);
}

int result_of(pid_t process) {
  int status = 0;
  if (process < 0 || waitpid(process, &status, 0) != process || !WIFEXITED(status)) return 3;
  return WEXITSTATUS(status);
}

int gpus() {
  return result_of(in_process([] {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
  }));
}

}  // namespace
}  // namespace chorale

int main(int argc, char** argv) {
  chorale::Options options;
  CLI::App app("Times the hand-written packet all-reduces and the plans of the same algorithms on GPUs.");
  app.add_option("--ranks", options.ranks, "2, 4 or 8; default: the largest for which there are GPUs")
      ->check(CLI::IsMember({2, 4, 8}));
  app.add_option("--bytes", options.sizes, "Sizes of the message; default 1K to 1M, times 4")
      ->transform(CLI::AsSizeValue(false))
      ->delimiter(',');
  app.add_option("--dtype", options.dtype, "bf16 or f32; default bf16")
      ->check(CLI::IsMember({"bf16", "f32"}));
  app.add_option("--algorithm", options.algorithm, "one_shot, two_shot or both; default both")
      ->check(CLI::IsMember({"one_shot", "two_shot", "both"}));
  app.add_option("--blocks", options.blocks, "Number of thread blocks of kernel and plan; default 8")
      ->check(CLI::Range(1, 128));
  app.add_option("--threads", options.threads,
                 "Threads per block of kernel and plan, a multiple of 32; default 512")
      ->check(CLI::Range(32, int(chorale::handwritten::most_threads)));
  app.add_option("--turns", options.turns, "Number of turns of each; default 5")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);

  const int gpus = chorale::gpus();
  if (options.ranks == 0) options.ranks = gpus >= 8 ? 8 : gpus >= 4 ? 4 : 2;
  if (gpus < options.ranks) {
    std::fprintf(stderr, "error: %d ranks need as many GPUs, but there are %d\n", options.ranks, gpus);
    return 3;
  }
  options.threads = options.threads / 32 * 32;
  for (uint64_t& bytes : options.sizes) bytes = std::max<uint64_t>(4, bytes / 4 * 4);
  return chorale::bench::run_in_processes(
      options.ranks, "bench_gpu_interpreting",
      [&](int rank, const std::string& address) { return chorale::run_rank(options, address, rank); });
}
