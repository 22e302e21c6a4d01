/// \file
/// Times the fused kernels and the kernels that they are compared with, and checks their results.
#pragma once

#include <chorale/launch.hpp>
#include <chorale/one_sided_window.hpp>
#include <chorale/transport.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/common/processes.hpp"
#include "bench/common/timing.hpp"
#include "tools/bench/nccl.hpp"

namespace chorale::fused_bench {

using bench::check;
using bench::Wrong;

/// Describes one way to do the work: `enqueue` enqueues a call.
struct Candidate {
  std::string name;
  std::function<void(cudaStream_t)> enqueue;
};

/// Describes one piece of work that is timed. Our kernels do it in several forms, and NCCL does it together
/// with a separate kernel of ours.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::string name() const = 0;

  /// Allocates memory for messages; each rank's input has `bytes` bytes.
  virtual void prepare(uint64_t bytes) = 0;
  virtual std::string shape() const = 0;
  virtual std::vector<Candidate> ours() = 0;
  /// Returns NCCL's candidate. From then until prepare(), inputs and results are in separate memory, because
  /// NCCL gets no windows.
  virtual Candidate by_nccl(tools::Nccl& nccl) = 0;

  /// Enqueues new inputs, and overwrites the results with wrong values.
  virtual void reset(cudaStream_t stream) = 0;
  /// Enqueues a count of the wrong elements in the result of the first call.
  virtual void count_wrong(cudaStream_t stream, uint64_t* wrong) = 0;
  /// Enqueues a checksum of the result's bits, which must be the same on all ranks. It enqueues nothing if
  /// there is no such result.
  virtual void digest(cudaStream_t, uint64_t*) {}
};

std::unique_ptr<Workload> transpose_all_to_all(World& world, Transport& transport);
std::unique_ptr<Workload> rms_norm_all_reduce(World& world, Transport& transport);
std::unique_ptr<Workload> rms_norm_to_codes(World& world, Transport& transport);
std::unique_ptr<Workload> quantised_all_reduce(World& world, Transport& transport);
std::unique_ptr<Workload> uneven_all_to_all(World& world, Transport& transport);
std::unique_ptr<Workload> expert_dispatch(World& world, Transport& transport);
std::unique_ptr<Workload> expert_exchange(World& world, Transport& transport);
std::unique_ptr<Workload> hooked_all_reduce(World& world, Transport& transport);
std::unique_ptr<Workload> hooked_all_gather(World& world, Transport& transport);
std::unique_ptr<Workload> hooked_reduce_scatter(World& world, Transport& transport);
std::unique_ptr<Workload> hooked_all_to_all(World& world, Transport& transport);

/// Gives the number of blocks for which memory that all ranks map has two barriers each.
constexpr uint32_t most_window_blocks = 264;
/// Collective.
OneSidedWindow shared_memory(World& world, uint64_t bytes);

/// Returns the launches of which one may be the fastest if a rank sends `bytes` bytes. In each, every block
/// and thread has work, much work gets enough threads, and all blocks are resident at once.
std::vector<LaunchConfig> shapes_for(uint64_t bytes);

/// Returns the transport's options, which are the same for all candidates.
RendezvousOptions links();

class Bench {
 public:
  explicit Bench(World& world);
  ~Bench();

  /// Returns the microseconds of a call on the slowest rank, in CUDA graphs of 50 calls, as the best of
  /// several rounds. It checks the results before and after the timing.
  /// \throws Wrong on all ranks if a result is wrong
  double time(Workload& workload, const Candidate& candidate);

 private:
  void verify(Workload& workload, const Candidate& candidate);
  void finish();

  World& world_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  uint64_t* counts_ = nullptr;  ///< the number of wrong elements, and the digest
};

}  // namespace chorale::fused_bench
