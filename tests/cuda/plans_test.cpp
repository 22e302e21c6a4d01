// Runs plans from files on GPUs, with one process per GPU, and compares bit for bit with the CPU backend:
//
//   plans_test [--quick] [--share-gpus [--processes]] [--results FILE] PLAN...
//
// With --quick it runs only small sizes. With --share-gpus, if there are fewer GPUs than ranks, ranks are
// threads of one process and several share one GPU. Plans whose blocks are then not all resident are named
// and left out. That shows that plans of many ranks are right, but says nothing about their speed. With
// --processes ranks take turns on the GPU instead. With --results, if ranks are threads, it writes a row for
// each plan, separated by tabs: its name, its ranks, the number of GPUs, and yes or the error.
//
// Each plan runs with all element types in turn, several sizes and every form of its packets, three times
// with new data and no host synchronisation between. Plans that the CPU backend refuses are named with its
// reason, and left out.

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chorale/executor.hpp>
#include <chorale/next_launch.hpp>
#include <chorale/scratch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/plan_work.hpp"
#include "tests/cuda/share_gpus.hpp"

namespace {

using namespace chorale;
using namespace chorale::test;

void must(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(result));
}

/// Holds a device buffer that grows with the cases.
class Room {
 public:
  ~Room() { cudaFree(memory_); }
  std::byte* of(size_t bytes) {
    if (bytes > bytes_) {
      cudaFree(memory_);
      must(cudaMalloc(&memory_, bytes), "cudaMalloc");
      bytes_ = bytes;
    }
    return static_cast<std::byte*>(memory_);
  }

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

Outputs run_on_gpu(World& world, Executor& executor, const Plan& plan, const Case& of, Room& room,
                   cudaStream_t stream) {
  const MessageSizes sizes = message_sizes(plan, of.bytes, of.dtype);
  const auto up = [](uint64_t bytes) { return (bytes + 255) / 256 * 256 + 256; };
  const uint64_t in_room = up(sizes.input), out_room = up(sizes.output);
  std::byte* const in = room.of((1 + launches) * (in_room + out_room));
  std::byte *const out = in + in_room, *const fed = out + out_room, *const kept = fed + launches * in_room;
  for (int launch = 0; launch < launches; ++launch) {
    const Bytes input = input_of(of, sizes.input, world.rank(), launch);
    must(cudaMemcpy(fed + size_t(launch) * in_room, input.data(), input.size(), cudaMemcpyHostToDevice),
         "H2D");
  }
  must(cudaDeviceSynchronize(), "H2D");
  const Arguments arguments{.in = in, .out = out, .bytes = of.bytes, .dtype = of.dtype, .packet = of.packet};
  executor.prepare(plan, arguments);
  for (int launch = 0; launch < launches; ++launch) {
    must(cudaMemsetAsync(out, fresh, out_room, stream), "output");
    must(cudaMemcpyAsync(in, fed + size_t(launch) * in_room, sizes.input, cudaMemcpyDeviceToDevice, stream),
         "input");
    executor.execute(plan, arguments, stream);
    must(cudaMemcpyAsync(kept + size_t(launch) * out_room, out, out_room, cudaMemcpyDeviceToDevice, stream),
         "result");
  }
  executor.synchronize(stream);
  Outputs outputs;
  for (int launch = 0; launch < launches; ++launch) {
    Bytes& output = outputs.emplace_back(out_room);
    must(cudaMemcpy(output.data(), kept + size_t(launch) * out_room, out_room, cudaMemcpyDeviceToHost),
         "D2H");
    if (std::any_of(output.begin() + int64_t(sizes.output), output.end(),
                    [](std::byte byte) { return byte != std::byte(fresh); }))
      throw std::runtime_error("launch " + std::to_string(launch) + " wrote past the end of the output");
    output.resize(sizes.output);
  }
  return outputs;
}

int device_count() {
  int devices = 0;
  must(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  return devices;
}

Config cuda_config() {
  Config config = Config::load();
  config.backend = "cuda";
  return config;
}

/// Returns whether any case runs in rounds, which are launches without other work between them.
bool runs_in_rounds(const Work& work) {
  const std::vector<ScratchUse> use = scratch_use(work.plan);
  const uint64_t window = cuda_config().round_scratch.value;
  return std::any_of(work.cases.begin(), work.cases.end(), [&](const Case& of) {
    const Layout whole = layout_of(work.plan, of.bytes, of.dtype, of.packet);
    return in_rounds(work.plan, use, whole, window).rounds() > 1;
  });
}

/// Returns whether the blocks of all ranks of a GPU can be resident at once, one per multiprocessor. The
/// blocks of small launches count twice if the plan runs in rounds, because the next round's blocks already
/// take their place and wait (docs/memory-orders.md).
bool all_resident(const Work& work, int devices) {
  int multiprocessors = 0;
  must(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), "multiprocessors");
  const bool in_a_row = runs_in_rounds(work);
  std::vector<size_t> blocks(size_t(devices), 0);
  for (size_t rank = 0; rank < work.plan.gpus.size(); ++rank) {
    const size_t own = work.plan.gpus[rank].threadblocks.size();
    const bool beside = in_a_row && detail::next_may_stand_beside(own, uint64_t(multiprocessors));
    blocks[rank % blocks.size()] += beside ? 2 * own : own;
  }
  return *std::max_element(blocks.begin(), blocks.end()) <= size_t(multiprocessors);
}

/// Holds the result of a plan.
struct Verdict {
  std::atomic<int> wrong{0};  ///< failed cases of all ranks that share it
  std::string said = "-";     ///< rank 0's error
};

/// Runs all cases of a plan.
/// \return the number of failed cases
int run_plan(World& world, Executor& executor, const Work& work, Room& room, cudaStream_t stream) {
  int failed = 0;
  for (size_t at = 0; at < work.cases.size(); ++at) {
    const Outputs seen = run_on_gpu(world, executor, work.plan, work.cases[at], room, stream);
    const std::string wrong =
        says_its_result(work.plan)
            ? difference(seen, work.expected[at][size_t(world.rank())], work.cases[at].dtype)
            : "";
    world.barrier();  // peers may still read from here
    if (wrong.empty()) continue;
    if (++failed > 5) continue;
    std::printf("FAILED rank %d: %s: %s: %s\n", world.rank(), work.file.c_str(),
                work.cases[at].name().c_str(), wrong.c_str());
    std::fflush(stdout);
  }
  return failed;
}

/// \param verdicts  by plan
/// \return the number of failed cases
int run_rank(World& world, const std::vector<Work>& all, std::vector<Verdict>& verdicts) {
  const int rank = world.rank(), ranks = world.ranks();
  int failed = 0;
  try {
    const int devices = device_count();
    must(cudaSetDevice(rank % devices), "cudaSetDevice");
    Executor executor(world, cuda_config());
    Room room;
    cudaStream_t stream = nullptr;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    for (size_t number = 0; number < all.size(); ++number) {
      const Work& work = all[number];
      if (int(work.plan.ranks()) != ranks) continue;
      std::string said = says_its_result(work.plan) ? "yes" : "ends";
      // A GPU has queues for this many streams, and a copy must not be queued behind a kernel that waits for
      // it.
      constexpr int most_sharing = 8;
      const bool crowd = ranks > most_sharing * devices;
      if (crowd || (devices < ranks && world.local() && !all_resident(work, devices))) {
        said = crowd ? "too many ranks share a GPU" : "too many thread blocks share a GPU";
        if (rank == 0) std::printf("skipped %s: %s\n", work.file.c_str(), said.c_str());
      } else {
        try {
          const int wrong = run_plan(world, executor, work, room, stream);
          verdicts[number].wrong += wrong;
          failed += wrong;
        } catch (const RunError& error) {
          // A plan of the `test` collective may wait for data that no rank sends.
          if (says_its_result(work.plan)) ++failed;
          if (says_its_result(work.plan) || rank == 0)
            std::printf("%s rank %d: %s: %s\n", says_its_result(work.plan) ? "FAILED" : "stopped", rank,
                        work.file.c_str(), error.what());
          std::fflush(stdout);
          said = says_its_result(work.plan) ? "NO: stopped" : "told where it waits";
          world.reset();
        }
      }
      if (rank == 0) verdicts[number].said = said;
    }
  } catch (const std::exception& error) {
    std::printf("FAILED rank %d: %s\n", rank, error.what());
    std::fflush(stdout);
    return failed + 1;
  }
  return failed;
}

/// Runs one rank in a separate process.
/// \return the number of failed cases
int run_process(int rank, const std::vector<Work>& all, int ranks, const std::string& address, bool share) {
  try {
    if (const int devices = device_count(); devices < (share ? 1 : ranks))
      throw std::runtime_error(std::to_string(ranks) + " GPUs needed, found: " + std::to_string(devices));
    World world = World::join(address, rank, ranks, cuda_config().join());
    std::vector<Verdict> verdicts(all.size());
    return run_rank(world, all, verdicts);
  } catch (const std::exception& error) {
    std::printf("FAILED rank %d: %s\n", rank, error.what());
    std::fflush(stdout);
    return 1;
  }
}

/// Runs all ranks as threads in another separate process.
/// \return the number of failed cases of all ranks
int run_threads(const std::vector<Work>& all, int ranks, const std::string& results) {
  let_threads_share_gpus();
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("FAILED %d ranks: no GPU\n", ranks);
    return 1;
  }
  std::atomic<int> failed{0};
  std::vector<Verdict> verdicts(all.size());
  run_local(ranks, [&](World& world) { failed += run_rank(world, all, verdicts); });
  if (results.empty()) return failed;
  std::ofstream rows(results, std::ios::app);
  for (size_t number = 0; number < all.size(); ++number) {
    if (int(all[number].plan.ranks()) != ranks) continue;
    const int wrong = verdicts[number].wrong;
    const std::string verdict =
        wrong == 0 ? verdicts[number].said : "NO: " + std::to_string(wrong) + " cases are not the CPU's";
    rows << std::filesystem::path(all[number].file).stem().string() << '\t' << ranks << '\t'
         << std::min(ranks, devices) << '\t' << verdict << '\n';
  }
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Work> all;
  std::vector<int> sizes;
  bool quick = false, share = false, processes = false;
  std::string results;
  int first = 1;
  for (; first < argc && argv[first][0] == '-'; ++first) {
    const std::string word = argv[first];
    if (word == "--quick")
      quick = true;
    else if (word == "--share-gpus")
      share = true;
    else if (word == "--processes")
      processes = true;
    else if (word == "--results" && first + 1 < argc)
      results = argv[++first];
    else {
      std::printf("'%s' is none of --quick, --share-gpus, --processes and --results FILE\n", argv[first]);
      return 2;
    }
  }
  const bool threads = share && !processes;
  if (!results.empty()) std::ofstream(results) << "plan\tranks\tgpus\tverdict\n";
  for (int at = first; at < argc; ++at) {
    Work work{.file = argv[at], .plan = {}, .cases = {}, .expected = {}};
    const std::string refused = prepare(work, quick);
    if (!refused.empty()) {
      std::printf("skipped %s: %s\n", argv[at], refused.c_str());
      continue;
    }
    const int ranks = int(work.plan.ranks());
    if (std::find(sizes.begin(), sizes.end(), ranks) == sizes.end()) sizes.push_back(ranks);
    all.push_back(std::move(work));
  }
  std::fflush(stdout);
  int failed = 0;
  for (const int ranks : sizes) {
    const std::string address = "shm://cuda-plans-" + std::to_string(getpid()) + "-" + std::to_string(ranks);
    std::vector<pid_t> children;
    for (int rank = 0; rank < (threads ? 1 : ranks); ++rank) {
      children.push_back(fork());  // before any call of CUDA
      if (children.back() != 0) continue;
      const int wrong =
          threads ? run_threads(all, ranks, results) : run_process(rank, all, ranks, address, share);
      std::fflush(stdout);
      _exit(wrong != 0);
    }
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      failed += !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
  }
  std::printf("%s: %zu of %d plans taken, %d %s failed\n", failed || all.empty() ? "FAILED" : "passed",
              all.size(), argc - first, failed, threads ? "numbers of ranks" : "ranks");
  return failed != 0 || all.empty();
}
