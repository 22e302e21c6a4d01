// Runs SM copies of host schedules on the fake CUDA. Their thread blocks are fibers on the stream's thread.

#include <chrono>
#include <thread>

#include "executor/schedule/cpu/sm_copy_fibers.hpp"
#include "executor/schedule/cuda/kernels.hpp"
#include "executor/schedule/sm_copy.hpp"
#include "state.hpp"
#include "streams.hpp"

namespace chorale::schedule_run {
namespace {

/// Hosts fibers on a stream. Nothing wakes a stream, so it polls.
class StreamHost final : public SmCopyHost {
 public:
  void wait(bool (*ready)(const void*), const void* state) override {
    if (!ready(state)) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  void step() override {}
};

}  // namespace

cudaError_t enqueue_sm_copy(const SmCopy& work, const SmCopyLaunch& launch, cudaStream_t stream) {
  test::fake::enqueue(stream, [work, launch] {
    StreamHost host;
    SmCopyFibers().run(
        work.blocks,
        [&](const Group& block) {
          sm_copy(block, work, launch);
          return Stop::none;
        },
        launch.deadline.shared, host, [](const std::string& why) { test::fake::die(why.c_str()); });
  });
  return cudaSuccess;
}

cudaError_t resident_sm_copy_blocks(uint64_t& blocks) {
  blocks = 264;
  return cudaSuccess;
}

}  // namespace chorale::schedule_run
