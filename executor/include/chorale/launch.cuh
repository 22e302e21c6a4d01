/// \file
/// On CUDA, launch() runs kernels of the device library on streams. Include this file in the host code of
/// CUDA sources; see launch.hpp.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "chorale/device.hpp"
#include "chorale/launch.hpp"
#include "chorale/next_launch.hpp"
#include "chorale/resident.cuh"

// Limits a thread to 128 registers, because a multiprocessor has 65536 and blocks of 512 threads must fit.
// When the compiler lacks this attribute (CUDA before 12.4), -maxrregcount=128 does the same.
#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 4)
#define CHORALE_REGISTERS __maxnreg__(128)
#else
#define CHORALE_REGISTERS
#endif

namespace chorale {

namespace detail {
/// Runs the kernel with each block as a group. When the kernel stops early, it writes the reason to the
/// world's abort word, which its peers and the host poll.
/// \param next_beside  the next launch in the stream may start while this one runs, and then waits for its
///                     turn
template <class Kernel>
__global__ void CHORALE_REGISTERS run_kernel(Kernel kernel, Deadline deadline, uint32_t rank,
                                             bool next_beside) {
  wait_for_turn(next_beside);
  const Group group = block_group();
  const Stop stop = kernel(group, deadline);
  if (stop != Stop::none && group.leader() && deadline.shared) raise_stop(deadline.shared, stop, rank);
}

inline void check_cuda(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();  // clears the error, so that an unrelated call does not report it
  throw RunError(RunError::Reason::other, std::string(what) + ": " + cudaGetErrorString(result));
}

/// Describes how a kernel fits on a GPU.
struct Residence {
  uint64_t blocks = 0;  ///< the most blocks that the GPU holds at a time
  bool waits = false;   ///< the kernel itself waits for the work before it in the stream (sm_90 and later),
                        ///< so it may be launched early
};

/// Returns the Residence of a kernel in blocks of `threads` threads. It caches the last answer, because a
/// query of CUDA takes as long as a launch.
template <class Kernel>
Residence residence(uint32_t threads) {
  constexpr uint64_t waits = uint64_t(1) << 31;
  static std::atomic<uint64_t> known{0};  // from the top: device plus 1, threads plus 1, `waits`, blocks
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  const uint64_t asked = uint64_t(device + 1) << 48 | uint64_t(threads + 1) << 32;
  const uint64_t last = known.load(std::memory_order_relaxed);
  if (last >> 32 == asked >> 32) return {last & (waits - 1), (last & waits) != 0};
  Resident resident;
  check_cuda(find_resident(reinterpret_cast<const void*>(run_kernel<Kernel>), threads, 0, device, resident),
             "the number of blocks that can be resident");
  cudaFuncAttributes attributes{};
  check_cuda(cudaFuncGetAttributes(&attributes, run_kernel<Kernel>), "cudaFuncGetAttributes");
  const Residence found{resident.blocks(), attributes.ptxVersion >= 90};
  known.store(asked | (found.waits ? waits : 0) | found.blocks, std::memory_order_relaxed);
  return found;
}

/// Throws UsageError unless the current GPU is the transport's. A kernel on another GPU could access the
/// memory of its links only slowly or not at all.
inline void check_device(const Transport& transport) {
  int device = -1;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  if (device == transport.device()) return;
  throw UsageError("this transport is on GPU " + std::to_string(transport.device()) +
                   ", and the current one is GPU " + std::to_string(device) +
                   ": cudaSetDevice() before the launch");
}

/// Throws UsageError unless the GPU holds all blocks of a launch at a time. These blocks wait for each other
/// and for the blocks of peers.
inline void check_resident(const LaunchConfig& config, uint32_t threads, uint64_t resident) {
  if (resident >= config.blocks) return;
  if (resident == 0 && config.blocks != 0) {
    throw UsageError(
        "a block of " + std::to_string(threads) +
        " threads of this kernel does not fit on this GPU, because of its registers or its shared memory: "
        "launch blocks of fewer threads, or compile with -maxrregcount=" +
        std::to_string(65536 / (threads == 0 ? 1 : threads) / 8 * 8));
  }
  throw UsageError(std::to_string(config.blocks) + " blocks of " + std::to_string(threads) +
                   " threads wait for each other, and this GPU holds " + std::to_string(resident) +
                   " at a time: launch fewer");
}
}  // namespace detail

/// Enqueues kernel(group, deadline) for every thread of every block; the group is the block. Kernels use up
/// to 128 registers per thread, so that blocks of 512 threads fit. A graph may capture the launch, because
/// its arguments do not change from launch to launch. When something goes wrong while the kernel runs, the
/// next launch on this transport, or World::check(), throws the error.
///
/// If a kernel is compiled for sm_90 or later and its blocks take up to a quarter of the GPU, the blocks of
/// the next launch may become resident while this launch runs. They begin their work only after this launch
/// has ended.
/// \throws UsageError as Transport::Use; if the transport's GPU is not the current one; if the GPU cannot
///         hold all blocks at a time
/// \throws RunError of an earlier launch; if this launch fails, which stops the world
template <class Kernel, class = detail::Side>
void launch(Transport& transport, const Kernel& kernel, const LaunchConfig& config = {}, LaunchStream on = {},
            const LaunchName& = {}) {
  if (transport.space() != Space::device) {
    throw UsageError(
        "this transport is in host memory: launch from a C++ source, with chorale/launch_cpu.hpp");
  }
  World& world = transport.world();
  world.check();
  const uint32_t threads = config.threads == 0 ? 256 : config.threads;
  if (config.blocks == 0) throw UsageError("the launch has 0 blocks, expected at least 1");
  detail::check_device(transport);
  const detail::Residence residence = detail::residence<Kernel>(threads);
  detail::check_resident(config, threads, residence.blocks);
  const Transport::Use use(transport, on.stream);
  const Deadline deadline{transport.device_abort_word(), uint64_t(world.timeout().count()), 0};
  // We do not launch by <<<>>>, because its error can only be read with cudaGetLastError(). That may return
  // an older error, which the application has already handled.
  cudaLaunchConfig_t shape{};
  shape.gridDim = dim3(config.blocks);
  shape.blockDim = dim3(threads);
  shape.stream = static_cast<cudaStream_t>(on.stream);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  shape.attrs = &early;
  shape.numAttrs = residence.waits ? 1 : 0;
  const bool next_beside = detail::next_may_stand_beside(config.blocks, residence.blocks);
  try {
    detail::check_cuda(cudaLaunchKernelEx(&shape, detail::run_kernel<Kernel>, kernel, deadline,
                                          uint32_t(world.rank()), next_beside),
                       "a launch of a kernel of the device library");
  } catch (const RunError& failed) {
    // Otherwise peers would wait for this rank, which has launched nothing.
    transport.set_broken();
    world.abort(failed.what());
    throw;
  }
}

}  // namespace chorale
