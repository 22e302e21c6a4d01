/// \file
/// launch() on CUDA: kernels of the device library on streams. For CUDA sources, host side; see launch.hpp.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <string>

#include "chorale/device.hpp"
#include "chorale/launch.hpp"

namespace chorale {

namespace detail {
/// One block a group. A kernel that stops says so in the world's abort word, where its peers and the host
/// look.
template <class Kernel>
__global__ void run_kernel(Kernel kernel, Deadline deadline, uint32_t rank) {
  const Group group = block_group();
  const Stop stop = kernel(group, deadline);
  if (stop != Stop::none && group.leader() && deadline.shared) raise_stop(deadline.shared, stop, rank);
}

inline void check_cuda(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();  // taken note of: it shall not turn up again at an unrelated call
  throw RunError(RunError::Reason::other, std::string(what) + ": " + cudaGetErrorString(result));
}

/// Blocks of `threads` threads that a GPU holds at a time. Asked once for a kernel, a device and a number of
/// threads in a row, since asking takes as long as a launch.
template <class Kernel>
uint64_t resident_blocks(uint32_t threads) {
  static std::atomic<uint64_t> known{0};  // from the top: device, threads, both plus one, and blocks
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  const uint64_t asked = uint64_t(device + 1) << 48 | uint64_t(threads + 1) << 32;
  const uint64_t last = known.load(std::memory_order_relaxed);
  if (last >> 32 == asked >> 32) return last & 0xffffffffu;
  int processors = 0, blocks = 0;
  check_cuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
             "cudaDeviceGetAttribute");
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, run_kernel<Kernel>, int(threads), 0),
             "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  const uint64_t resident = uint64_t(blocks) * uint64_t(processors);
  known.store(asked | resident, std::memory_order_relaxed);
  return resident;
}

/// A kernel on another GPU would not reach the memory of its links, or slowly.
inline void check_device(const Transport& transport) {
  int device = -1;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  if (device == transport.device()) return;
  throw UsageError("this transport is on GPU " + std::to_string(transport.device()) +
                   ", and the current one is GPU " + std::to_string(device) +
                   ": cudaSetDevice() before the launch");
}

/// Blocks of a launch wait for each other and for those of peers, so all must be on the GPU at a time.
template <class Kernel>
void check_resident(const LaunchConfig& config, uint32_t threads) {
  const uint64_t resident = resident_blocks<Kernel>(threads);
  if (resident >= config.blocks) return;
  throw UsageError(std::to_string(config.blocks) + " blocks of " + std::to_string(threads) +
                   " threads wait for each other, and this GPU holds " + std::to_string(resident) +
                   " at a time: launch fewer");
}
}  // namespace detail

/// Enqueues kernel(group, deadline) for every thread of every block; the group is the block. May be captured:
/// nothing that it passes changes from launch to launch. What goes wrong while it runs is thrown by the next
/// launch on this transport, or World::check().
/// \throws UsageError as Transport::Use; if the transport's GPU is not the current one; if the blocks are not
/// resident together \throws RunError of an earlier launch; if this one fails, which stops the world
template <class Kernel>
void launch(Transport& transport, const Kernel& kernel, const LaunchConfig& config = {}, Lane lane = {},
            const LaunchName& = {}) {
  if (transport.space() != Space::device) {
    throw UsageError(
        "this transport is in host memory: launch from a C++ source, with chorale/launch_cpu.hpp");
  }
  World& world = transport.world();
  world.check();
  const uint32_t threads = config.threads == 0 ? 256 : config.threads;
  if (config.blocks == 0) throw UsageError("a launch of 0 blocks");
  detail::check_device(transport);
  detail::check_resident<Kernel>(config, threads);
  const Transport::Use use(transport, lane.stream);
  const Deadline deadline{transport.device_abort_word(), uint64_t(world.timeout().count()), 0};
  // Not by <<<>>>, which leaves its error among those of all other calls: one that the application has dealt
  // with would be taken for it.
  cudaLaunchConfig_t shape{};
  shape.gridDim = dim3(config.blocks);
  shape.blockDim = dim3(threads);
  shape.stream = static_cast<cudaStream_t>(lane.stream);
  try {
    detail::check_cuda(
        cudaLaunchKernelEx(&shape, detail::run_kernel<Kernel>, kernel, deadline, uint32_t(world.rank())),
        "a launch of a kernel of the device library");
  } catch (const RunError& failed) {
    // Peers would wait for what this rank has not launched.
    transport.set_broken();
    world.abort(failed.what());
    throw;
  }
}

}  // namespace chorale
