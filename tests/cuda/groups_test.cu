// Tests groups of every scope, and the signals between them, on a GPU, as tests/unit/tiles/group_test.cpp
// does on fibers. It exits with 0 if all is right.

#include <sys/wait.h>
#include <unistd.h>

#include <chorale/launch.cuh>
#include <cstdio>
#include <cstdlib>

#include "tests/group_scopes.hpp"

using namespace chorale;

namespace {

void check(cudaError_t result) { detail::check_cuda(result, "cuda_groups"); }

/// Holds the errors that kernels found.
struct Found {
  unsigned long long count;
  int line;  ///< line of one of them
};

__device__ void expect(bool holds, Found* found, int line) {
  if (holds) return;
  atomicAdd(&found->count, 1ull);
  found->line = line;
}
#define EXPECT(holds) expect((holds), found, __LINE__)

/// Holds zeroed memory of the GPU. While no kernel runs, the host also reads it, element by element.
template <class T>
class Elements {
 public:
  explicit Elements(uint64_t n) {
    check(cudaMalloc(&data_, n * sizeof(T)));
    check(cudaMemset(data_, 0, n * sizeof(T)));
    check(cudaDeviceSynchronize());
  }
  ~Elements() { cudaFree(data_); }
  Elements(const Elements&) = delete;
  T* data() const { return data_; }

  T operator[](uint64_t at) const {
    T value;
    check(cudaMemcpy(&value, data_ + at, sizeof value, cudaMemcpyDeviceToHost));
    return value;
  }
  void set(uint64_t at, const T& value) const {
    check(cudaMemcpy(data_ + at, &value, sizeof value, cudaMemcpyHostToDevice));
    check(cudaDeviceSynchronize());
  }

 private:
  T* data_ = nullptr;
};

int failures = 0;

void ended(const char* what, const Elements<Found>& found) {
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
  std::printf("%s\n", what);
  const Found seen = found[0];
  if (seen.count == 0) return;
  std::printf("  %llu times something does not hold, once at line %d\n", seen.count, seen.line);
  found.set(0, {});
  ++failures;
}

// -- Groups

struct Expect {
  Found* found;
  __device__ void operator()(bool holds, int line) const { expect(holds, found, line); }
};

__global__ void __launch_bounds__(1024) every_scope(uint64_t* room, Found* found, uint32_t blocks) {
  const Group block = block_group();
  EXPECT(block.size == blockDim.x && block.count == gridDim.x && block.id == blockIdx.x);
  EXPECT(cluster_group(block).size == blocks * blockDim.x);
  test::EveryScope<Expect>{room, {found}}(block);
}

void test_scopes() {
  const Elements<Found> found(1);
  const Elements<uint64_t> room(6 * 1024);
  for (const uint32_t threads : {32u, 64u, 128u, 256u, 512u, 1024u}) {
    every_scope<<<3, threads>>>(room.data(), found.data(), 1);
    ended(("groups of blocks of " + std::to_string(threads)).c_str(), found);
  }
  for (const uint32_t blocks : {1u, 2u, 4u}) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {blocks, 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = 4;
    config.blockDim = 256;
    config.attrs = &attribute;
    config.numAttrs = 1;
    check(cudaLaunchKernelEx(&config, every_scope, room.data(), found.data(), blocks));
    ended(("groups of clusters of " + std::to_string(blocks)).c_str(), found);
  }
}

/// Counts how many groups take each item.
__global__ void __launch_bounds__(1024) cover(uint32_t* contiguous, uint32_t* strided, uint64_t items) {
  const Group part = multiwarp_group(64);
  part.each_contiguous(items, [&](uint64_t item) {
    if (part.leader()) atomicAdd(&contiguous[item], 1u);
  });
  part.each_strided(items, [&](uint64_t item) {
    if (part.leader()) atomicAdd(&strided[item], 1u);
  });
}

/// Counts which group of which part each is, with 4 parts of at most 64 groups, for each kind of split.
__global__ void __launch_bounds__(1024) splits(uint32_t* seen, uint32_t* counts, Found* found) {
  const Group warp = warp_group();
  const uint32_t weights[] = {1, 0, 5, 2};
  const Split all[] = {warp.split(4), warp.split_interleaved(4), warp.split_weighted(weights, 4)};
  for (uint32_t kind = 0; kind < 3; ++kind) {
    const Split& split = all[kind];
    EXPECT(split.part < 4 && split.group.id < split.group.count && split.group.rank == warp.rank);
    if (!warp.leader() || split.part >= 4 || split.group.id >= 64) continue;
    atomicAdd(&seen[(kind * 4 + split.part) * 64 + split.group.id], 1u);
    store_relaxed(&counts[kind * 4 + split.part], split.group.count);
  }
}

void test_shares() {
  const Elements<Found> found(1);
  for (const uint64_t items : {0, 1, 7, 1000}) {
    const Elements<uint32_t> contiguous(items + 1), strided(items + 1);
    cover<<<3, 256>>>(contiguous.data(), strided.data(), items);
    ended(("shares of " + std::to_string(items) + " items").c_str(), found);
    for (uint64_t item = 0; item <= items; ++item) {
      const uint32_t wanted = item < items ? 1 : 0;
      if (contiguous[item] == wanted && strided[item] == wanted) continue;
      std::printf("  item %llu is taken %u and %u times\n", (unsigned long long)item, contiguous[item],
                  strided[item]);
      ++failures;
      break;
    }
  }
  const Elements<uint32_t> seen(12 * 64), counts(12);
  splits<<<5, 7 * 32>>>(seen.data(), counts.data(), found.data());
  ended("splits of 35 groups", found);
  for (uint32_t kind = 0; kind < 3; ++kind) {
    uint32_t groups = 0;
    for (uint32_t part = 0; part < 4; ++part) {
      const uint32_t count = counts[kind * 4 + part];
      groups += count;
      for (uint32_t id = 0; id < 64; ++id) {
        if (seen[(kind * 4 + part) * 64 + id] == (id < count ? 1 : 0)) continue;
        std::printf("  kind %u: group %u of the %u in part %u is there %u times\n", kind, id, count, part,
                    seen[(kind * 4 + part) * 64 + id]);
        ++failures;
      }
    }
    if (groups != 35) {
      std::printf("  kind %u: %u groups\n", kind, groups);
      ++failures;
    }
  }
}

// -- Signals

/// Makes two blocks signal each other in turn, with data of all threads before each signal.
__global__ void __launch_bounds__(1024)
    ping_pong(Signal* signals, uint64_t* data, uint64_t rounds, Found* found) {
  const Group group = block_group();
  const Deadline deadline{nullptr, uint64_t(10e9), 0};
  for (uint64_t round = 1; round <= rounds; ++round) {
    if (group.id == 0) {
      data[group.rank] = round * 10000 + group.rank;
      signal_set(group, &signals[1], round);
    }
    const Stop stop = wait_until(group, &signals[group.id], Cmp::ge, round, deadline);
    EXPECT(stop == Stop::none);
    if (stop != Stop::none) return;
    if (group.id == 0) continue;
    const uint32_t other = group.size - 1 - group.rank;
    EXPECT(load_relaxed(&data[other]) == round * 10000 + other);
    signal_add(group, &signals[0]);
  }
}

__global__ void __launch_bounds__(1024)
    barriers(Barrier* at, uint64_t* rounds, uint64_t count, Found* found) {
  const Group group = block_group();
  const Deadline deadline{nullptr, uint64_t(10e9), 0};
  for (uint64_t round = 1; round <= count; ++round) {
    if (group.leader()) store_relaxed(&rounds[group.id], round);
    for (uint32_t other = 0; other < group.count; ++other) {
      if (other != group.id) arrive(group, &at[other]);
    }
    const Stop stop = wait(group, &at[group.id], deadline, group.count - 1);
    EXPECT(stop == Stop::none);
    if (stop != Stop::none) return;
    if (group.rank < group.count) EXPECT(load_relaxed(&rounds[group.rank]) >= round);
  }
}

/// Makes waits that cannot end, whose threads must all receive the same stop. Tests the six comparisons.
__global__ void __launch_bounds__(1024) stops(const Signal* two, AbortWord* raised, Found* found) {
  const Group group = block_group();
  const Deadline soon{nullptr, 1000000, 0};
  for (uint64_t value = 0; value < 5; ++value) {
    const bool holds[] = {2 == value, 2 != value, 2 < value, 2 <= value, 2 > value, 2 >= value};
    for (const Cmp cmp : {Cmp::eq, Cmp::ne, Cmp::lt, Cmp::le, Cmp::gt, Cmp::ge}) {
      const Stop stop = wait_until(group, two, cmp, value, soon);
      EXPECT(stop == (holds[uint32_t(cmp)] ? Stop::none : Stop::timed_out));
    }
  }
  const Deadline aborted{raised, uint64_t(10e9), 0};
  EXPECT(wait_until(group, two, Cmp::ge, 3, aborted) == Stop::aborted);
  EXPECT(wait_until(group, two, Cmp::ge, 2, aborted) == Stop::none);
  EXPECT(stop_for(group, aborted) == Stop::aborted);
  EXPECT(load_relaxed(&two->value) == 2);
}

void test_signals() {
  const Elements<Found> found(1);
  for (const uint32_t threads : {32u, 256u, 1024u}) {
    const Elements<Signal> signals(2);
    const Elements<uint64_t> data(1024);
    ping_pong<<<2, threads>>>(signals.data(), data.data(), 1000, found.data());
    ended(("ping-pong of blocks of " + std::to_string(threads)).c_str(), found);
    const Elements<Barrier> at(4);
    const Elements<uint64_t> rounds(4);
    barriers<<<4, threads>>>(at.data(), rounds.data(), 1000, found.data());
    ended(("a thousand barriers of blocks of " + std::to_string(threads)).c_str(), found);
    const Elements<Signal> two(1);
    const Elements<AbortWord> raised(1);
    two.set(0, {2});
    raised.set(0, {uint32_t(Stop::aborted)});
    stops<<<1, threads>>>(two.data(), raised.data(), found.data());
    ended(("comparisons and stops of " + std::to_string(threads)).c_str(), found);
  }
}

// -- What is refused, each in a process of its own: a trap is the end of its CUDA

__global__ void impossible(int which) {
  const uint32_t zeros[] = {0, 0};
  const Group block = block_group();
  switch (which) {
    case 0:
      block.split(0);
      break;
    case 1:
      block.split_interleaved(0);
      break;
    case 2:
      block.split_weighted(zeros, 2);
      break;
    case 3:
      multiwarp_group(48);
      break;
    case 4:
      multiwarp_group(0);
      break;
    case 5:
      multiwarp_group(multiwarp_group(block, 32), 32);
      break;
    case 6:
      cluster_group(warp_group(block));
      break;
    case 7:
      thread_group(block).warps();
      break;
    case 8: {
      Endpoint e;
      e.packet_bytes = 1024;
      detail::check_packets<LL128>(thread_group(block), e, Leg{});
      break;
    }
  }
}
constexpr int impossible_calls = 9;

void test_refusals() {
  for (int which = 0; which <= impossible_calls; ++which) {
    const pid_t child = fork();
    if (child == 0) {
      impossible<<<1, 64>>>(which);
      const bool refused = cudaDeviceSynchronize() != cudaSuccess;
      std::_Exit(refused ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    const int wanted = which < impossible_calls ? 1 : 0;  // the last is possible, and runs
    if (WIFEXITED(status) && WEXITSTATUS(status) == wanted) continue;
    std::printf("impossible call %d: status %d\n", which, status);
    ++failures;
  }
  std::printf("refusals\n");
}

}  // namespace

int main() {
  try {
    test_refusals();  // forks, so it must run before CUDA is used here
    test_scopes();
    test_shares();
    test_signals();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
  return failures == 0 ? 0 : 1;
}
