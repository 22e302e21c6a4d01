// What goes wrong on GPUs, and what must keep working: replay, streams, buffers. One process a rank; two
// ranks, which may share a GPU. Each case is a process group of its own: faults_test [--filter TEXT] [--plans
// FOLDER]

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chorale/device/deadline.hpp>
#include <chorale/executor.hpp>
#include <chorale/json.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace chorale;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int ranks = 2;
constexpr uint64_t elements = 1024;

[[noreturn]] void fail(const std::string& why) { throw std::runtime_error(why); }
void must(cudaError_t result, const char* what) {
  if (result != cudaSuccess) fail(std::string(what) + ": " + cudaGetErrorString(result));
}
void expect(bool holds, const std::string& what) {
  if (!holds) fail("does not hold: " + what);
}
void expect_in(const std::string& text, const std::string& part) {
  if (text.find(part) == std::string::npos) fail("'" + part + "' is not in: " + text);
}

std::string plans = CHORALE_SOURCE_DIR "/plans/shipped";

Plan shipped(const std::string& name) { return load(plans + "/" + name + ".json"); }

/// What a rank of a case works with.
struct Rank {
  int rank;
  std::string address;
  Config config;
  World world;
  Executor executor;
  cudaStream_t stream = nullptr;
  float *in = nullptr, *out = nullptr;

  static Config config_of(const char* timeout) {
    Config config = Config::load();
    config.backend = "cuda";
    config.timeout = parse_duration(timeout);
    return config;
  }

  Rank(int of, const std::string& at, const char* timeout)
      : rank(of),
        address(at),
        config(config_of(timeout)),
        world(World::join(at, of, ranks, config.join())),
        executor(world, config) {
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    must(cudaMalloc(reinterpret_cast<void**>(&in), elements * sizeof(float)), "in");
    must(cudaMalloc(reinterpret_cast<void**>(&out), elements * sizeof(float)), "out");
  }

  Arguments arguments() const { return {.in = in, .out = out, .bytes = elements * sizeof(float)}; }
  float value(int run, int of) const { return float(run * 10 + of + 1); }

  void feed(int run, float* to = nullptr) {
    const std::vector<float> data(elements, value(run, rank));
    must(cudaMemcpyAsync(to ? to : in, data.data(), elements * sizeof(float), cudaMemcpyHostToDevice, stream),
         "feed");
    must(cudaStreamSynchronize(stream), "feed");
  }
  /// The sum of all ranks' values of a run.
  void compare(int run, const float* from = nullptr) {
    std::vector<float> data(elements);
    must(cudaMemcpyAsync(data.data(), from ? from : out, elements * sizeof(float), cudaMemcpyDeviceToHost,
                         stream),
         "compare");
    must(cudaStreamSynchronize(stream), "compare");
    float wanted = 0;
    for (int of = 0; of < ranks; ++of) wanted += value(run, of);
    for (uint64_t at = 0; at < elements; ++at) {
      if (data[at] != wanted)
        fail("run " + std::to_string(run) + ": element " + std::to_string(at) + " is " +
             std::to_string(data[at]) + ", not " + std::to_string(wanted));
    }
  }
  void good_run(const Plan& plan, int run) {
    feed(run);
    executor.execute(plan, arguments(), stream);
    executor.synchronize(stream);
    compare(run);
  }
};

/// The RunError or UsageError that a call throws; fails if it throws none.
std::string thrown(const std::function<void()>& call, RunError::Reason* reason = nullptr) {
  try {
    call();
  } catch (const RunError& error) {
    if (reason) *reason = error.reason;
    return error.what();
  } catch (const UsageError& error) {
    return error.what();
  }
  fail("nothing was thrown");
}

/// Runs and synchronises until it throws.
std::string run_until_thrown(Rank& me, const Plan& plan, RunError::Reason* reason = nullptr) {
  return thrown(
      [&] {
        me.executor.execute(plan, me.arguments(), me.stream);
        me.executor.synchronize(me.stream);
      },
      reason);
}

const std::string packets_plan = "allreduce_one_shot_2", signals_plan = "allreduce_all_pairs_2";

// -- Cases: each runs in every rank's process
// ------------------------------------------------------------------------------------------------------

void a_rank_that_never_comes(int rank, const std::string& address) {
  Rank me(rank, address, "700ms");
  for (const std::string& name : {signals_plan, packets_plan}) {
    const Plan plan = shipped(name);
    me.good_run(plan, 1);
    me.world.barrier();
    if (rank == 0) {
      const auto start = Clock::now();
      RunError::Reason reason{};
      const std::string text = run_until_thrown(me, plan, &reason);
      expect(Clock::now() - start < 1700ms, "the error comes within a second of the deadline");
      expect(reason == RunError::Reason::timed_out, "the reason is timed_out: " + text);
      expect_in(text, "rank 0 block 0 op");
      expect_in(text, ".cpp:");  // the author's line
      if (name == signals_plan) expect_in(text, "from rank 1: expected");
    } else {
      std::this_thread::sleep_for(1200ms);
      expect(me.world.abort_word()->stop != 0, "the other rank hears of it");
      thrown([&] { me.executor.check(); });
    }
    must(cudaDeviceSynchronize(), "the context is usable");
    me.world.reset();
    std::this_thread::sleep_for(50ms);  // what the stopped blocks left behind must not stop the world again
    for (int run = 2; run < 5; ++run) me.good_run(plan, run);
  }
}

void an_abort_from_another_thread(int rank, const std::string& address) {
  Rank me(rank, address, "off");
  const Plan plan = shipped(signals_plan);
  me.good_run(plan, 1);
  me.world.barrier();
  if (rank == 0) {
    std::thread other([&] {
      std::this_thread::sleep_for(200ms);
      me.world.abort("enough");
    });
    RunError::Reason reason{};
    const std::string text = run_until_thrown(me, plan, &reason);
    other.join();
    expect(reason == RunError::Reason::aborted, "the reason is aborted");
    expect_in(text, "enough");
    expect_in(text, "rank 0 block 0 op");
  } else {
    while (me.world.abort_word()->stop == 0) std::this_thread::sleep_for(1ms);
    expect_in(thrown([&] { me.executor.check(); }), "enough");
  }
  me.world.reset();
  me.good_run(plan, 2);
}

void a_rank_that_dies(int rank, const std::string& address) {
  Rank me(rank, address, "off");
  const Plan plan = shipped(signals_plan);
  me.good_run(plan, 1);
  me.world.barrier();
  if (rank == 1) {
    std::this_thread::sleep_for(200ms);
    kill(getpid(), SIGKILL);
  }
  RunError::Reason reason{};
  const std::string text = run_until_thrown(me, plan, &reason);
  expect(reason == RunError::Reason::peer_lost, "the reason is peer_lost: " + text);
  expect_in(text, "rank 1");
  must(cudaDeviceSynchronize(), "the context is usable");
}

void calls_that_differ(int rank, const std::string& address) {
  Rank me(rank, address, "5s");
  const Plan plan = shipped(packets_plan), other = shipped(signals_plan);
  const auto differ = [&](const Plan& mine, Arguments arguments, const char* what) {
    expect_in(thrown([&] { me.executor.execute(mine, arguments, me.stream); }), what);
  };
  Arguments arguments = me.arguments();
  arguments.bytes -= rank ? 64 : 0;
  differ(plan, arguments, "disagree on bytes");
  arguments = me.arguments();
  arguments.dtype = rank ? DType::bf16 : DType::f32;
  differ(plan, arguments, "disagree on dtype");
  arguments = me.arguments();
  arguments.op = rank ? ReduceOp::max : ReduceOp::min;
  differ(plan, arguments, "disagree on op");
  differ(rank ? plan : other, me.arguments(), "disagree on the plan");
  me.good_run(plan, 1);
}

void an_unprepared_capture(int rank, const std::string& address) {
  Rank me(rank, address, "5s");
  const Plan plan = shipped(packets_plan);
  must(cudaStreamBeginCapture(me.stream, cudaStreamCaptureModeThreadLocal), "capture");
  expect_in(thrown([&] { me.executor.execute(plan, me.arguments(), me.stream); }), "prepare()");
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(me.stream, &graph);
  if (graph) cudaGraphDestroy(graph);
  cudaGetLastError();
  me.good_run(plan, 1);
}

/// Graphs of one launch, replayed, with eager launches between them, all with new data.
void graphs_and_eager_launches_mixed(int rank, const std::string& address) {
  Rank me(rank, address, "10s");
  for (const std::string& name : {packets_plan, signals_plan, std::string("allreduce_two_shot_2")}) {
    const Plan plan = shipped(name);
    me.executor.prepare(plan, me.arguments());
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    must(cudaStreamBeginCapture(me.stream, cudaStreamCaptureModeThreadLocal), "capture");
    me.executor.execute(plan, me.arguments(), me.stream);
    must(cudaStreamEndCapture(me.stream, &graph), "capture");
    must(cudaGraphInstantiate(&replay, graph, 0), "instantiate");
    // All data of all runs first, so that nothing waits for the host in between.
    constexpr int runs = 1000;
    float *fed = nullptr, *kept = nullptr;
    const size_t row = elements * sizeof(float);
    must(cudaMalloc(reinterpret_cast<void**>(&fed), runs * row), "fed");
    must(cudaMalloc(reinterpret_cast<void**>(&kept), runs * row), "kept");
    for (int run = 0; run < runs; ++run) me.feed(run, fed + run * elements);
    for (int run = 0; run < runs; ++run) {
      must(cudaMemcpyAsync(me.in, fed + run * elements, row, cudaMemcpyDeviceToDevice, me.stream), "in");
      if (run % 7 == 3) {
        me.executor.execute(plan, me.arguments(), me.stream);
      } else {
        must(cudaGraphLaunch(replay, me.stream), "replay");
      }
      must(cudaMemcpyAsync(kept + run * elements, me.out, row, cudaMemcpyDeviceToDevice, me.stream), "out");
    }
    me.executor.synchronize(me.stream);
    for (int run = 0; run < runs; ++run) me.compare(run, kept + run * elements);
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
    cudaFree(fed);
    cudaFree(kept);
  }
}

/// Two worlds, two plans each, on streams of their own, with no order between them.
void several_communicators_and_streams(int rank, const std::string& address) {
  Rank me(rank, address, "10s"), other(rank, address + "-b", "10s");
  const Plan one = shipped(packets_plan), two = shipped("allreduce_two_shot_2");
  for (Rank* of : {&me, &other}) {
    of->executor.prepare(one, of->arguments());
    of->executor.prepare(two, of->arguments());
  }
  for (int run = 0; run < 100; ++run) {
    me.feed(run);
    other.feed(run + 1000);
    me.executor.execute(run % 2 ? one : two, me.arguments(), me.stream);
    other.executor.execute(run % 3 ? one : two, other.arguments(), other.stream);
    me.executor.synchronize(me.stream);
    other.executor.synchronize(other.stream);
    me.compare(run);
    other.compare(run + 1000);
  }
}

/// Memory that is freed and made again, often at the same address, is another allocation.
void buffers_that_come_and_go(int rank, const std::string& address) {
  Rank me(rank, address, "10s");
  const Plan plan = shipped(signals_plan);
  int same = 0;
  const float* before = nullptr;
  for (int run = 0; run < 8; ++run) {
    float *in = nullptr, *out = nullptr;
    must(cudaMalloc(reinterpret_cast<void**>(&in), elements * sizeof(float) + 4096), "in");
    must(cudaMalloc(reinterpret_cast<void**>(&out), elements * sizeof(float) + 4096), "out");
    same += in == before;
    before = in;
    // At another place of its allocation on each rank.
    float *const from = in + 16 * (rank + 1), *const to = out + 16 * (rank + 2);
    me.feed(run, from);
    me.executor.execute(plan, {.in = from, .out = to, .bytes = elements * sizeof(float)}, me.stream);
    me.executor.synchronize(me.stream);
    me.compare(run, to);
    me.world.barrier();
    cudaFree(in);
    cudaFree(out);
  }
  if (rank == 0) std::printf("    the same address came %d times\n", same);
}

/// Memory that peers cannot map is staged.
void buffers_that_cannot_be_shared(int rank, const std::string& address) {
  Rank me(rank, address, "10s");
  const Plan plan = shipped(signals_plan);
  float *in = nullptr, *out = nullptr;
  must(cudaMallocAsync(reinterpret_cast<void**>(&in), elements * sizeof(float), me.stream), "in");
  must(cudaMallocAsync(reinterpret_cast<void**>(&out), elements * sizeof(float), me.stream), "out");
  must(cudaStreamSynchronize(me.stream), "allocation");
  for (int run = 0; run < 5; ++run) {
    me.feed(run, in);
    me.executor.execute(plan, {.in = in, .out = out, .bytes = elements * sizeof(float)}, me.stream);
    me.executor.synchronize(me.stream);
    me.compare(run, out);
  }
}

struct TestCase {
  const char* name;
  void (*body)(int rank, const std::string& address);
  int killed = -1;  ///< a rank that ends by SIGKILL
};

const TestCase cases[] = {
    {"an_unprepared_capture", an_unprepared_capture},
    {"calls_that_differ", calls_that_differ},
    {"graphs_and_eager_launches_mixed", graphs_and_eager_launches_mixed},
    {"several_communicators_and_streams", several_communicators_and_streams},
    {"buffers_that_come_and_go", buffers_that_come_and_go},
    {"buffers_that_cannot_be_shared", buffers_that_cannot_be_shared},
    {"a_rank_that_never_comes", a_rank_that_never_comes},
    {"an_abort_from_another_thread", an_abort_from_another_thread},
    {"a_rank_that_dies", a_rank_that_dies, 1},
};

int run_case(const TestCase& of) {
  const std::string address = "shm://cuda-faults-" + std::to_string(getpid()) + "-" + of.name;
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    children.push_back(fork());  // before anything of CUDA
    if (children.back() != 0) continue;
    try {
      int devices = 0;
      must(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
      must(cudaSetDevice(rank % devices), "cudaSetDevice");
      of.body(rank, address);
      std::fflush(stdout);
      _exit(0);
    } catch (const std::exception& error) {
      std::printf("  rank %d: %s\n", rank, error.what());
      std::fflush(stdout);
      _exit(1);
    }
  }
  bool good = true;
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    waitpid(children[size_t(rank)], &status, 0);
    good &= rank == of.killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                              : WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string filter;
  for (int at = 1; at + 1 < argc; at += 2) {
    if (argv[at] == std::string("--filter")) filter = argv[at + 1];
    if (argv[at] == std::string("--plans")) plans = argv[at + 1];
  }
  int failed = 0, done = 0;
  for (const TestCase& of : cases) {
    if (std::string(of.name).find(filter) == std::string::npos) continue;
    const auto start = Clock::now();
    std::fflush(stdout);
    const int wrong = run_case(of);
    failed += wrong;
    ++done;
    std::printf("%s %s (%.1f s)\n", wrong ? "FAILED" : "passed", of.name,
                std::chrono::duration<double>(Clock::now() - start).count());
    std::fflush(stdout);
  }
  std::printf("%d of %d cases failed\n", failed, done);
  return failed != 0 || done == 0;
}
