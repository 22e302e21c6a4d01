/// \file
/// How the fused kernels and what they are compared with are timed, and their results checked.
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

namespace chorale::fused {

using bench::check;
using bench::Wrong;

/// One way of doing it: enqueues a call.
struct Candidate {
  std::string name;
  std::function<void(cudaStream_t)> enqueue;
};

/// What is timed: the same work, done by kernels of ours in several forms, and by NCCL and a kernel of ours.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::string name() const = 0;

  /// Allocates for messages of `bytes` bytes, of each rank's input.
  virtual void prepare(uint64_t bytes) = 0;
  virtual std::string shape() const = 0;
  virtual std::vector<Candidate> ours() = 0;
  /// From here on, until prepare(), inputs and results are in memory of their own: NCCL is not given windows.
  virtual Candidate by_nccl(tools::Nccl& nccl) = 0;

  /// Enqueues new inputs, and results that are wrong.
  virtual void reset(cudaStream_t stream) = 0;
  /// Enqueues a count of the wrong elements of a first call's result.
  virtual void count_wrong(cudaStream_t stream, uint64_t* wrong) = 0;
  /// Enqueues a sum over the bits of what is to be the same bits on all ranks; nothing where there is no such
  /// thing.
  virtual void digest(cudaStream_t, uint64_t*) {}
};

std::unique_ptr<Workload> transpose_all_to_all(World& world, Transport& transport);
std::unique_ptr<Workload> rms_norm_all_reduce(World& world, Transport& transport);
std::unique_ptr<Workload> uneven_all_to_all(World& world, Transport& transport);
std::unique_ptr<Workload> hooked_all_reduce(World& world, Transport& transport);
std::unique_ptr<Workload> hooked_all_gather(World& world, Transport& transport);
std::unique_ptr<Workload> hooked_reduce_scatter(World& world, Transport& transport);
std::unique_ptr<Workload> hooked_all_to_all(World& world, Transport& transport);

/// Memory that all ranks map, with two barriers for each of `most_window_blocks` blocks. Collective.
constexpr uint32_t most_window_blocks = 264;
OneSidedWindow shared_memory(World& world, uint64_t bytes);

/// Launches of which one may be the fastest where a rank sends `bytes` bytes: of blocks that have something
/// to do, without more threads than have, nor too few for much, and all resident together.
std::vector<LaunchConfig> shapes_for(uint64_t bytes);

/// The transport of all candidates.
RendezvousOptions links();

class Bench {
 public:
  explicit Bench(World& world);
  ~Bench();

  /// Microseconds of a call on the slowest rank, in CUDA graphs of 50 calls; the best of several rounds.
  /// Results are checked before and after that.
  /// \throws Wrong on all ranks
  double time(Workload& workload, const Candidate& candidate);

 private:
  void verify(Workload& workload, const Candidate& candidate);
  void finish();

  World& world_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  uint64_t* counts_ = nullptr;  ///< of wrong elements, and the digest
};

}  // namespace chorale::fused
