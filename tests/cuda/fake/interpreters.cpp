// Runs device programs on the fake CUDA with the CPU's interpreter. The thread blocks of a launch are fibers
// on the thread of its stream. Other streams have other threads, so launches of several GPUs may wait for
// each other.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "chorale/codec.hpp"
#include "executor/cpu/interpreter.hpp"
#include "executor/cpu/reduction.hpp"
#include "executor/cuda/kernels/kernels.hpp"
#include "executor/cuda/kernels/launch.hpp"
#include "executor/fibers/fiber.hpp"
#include "state.hpp"
#include "streams.hpp"

namespace chorale::test::fake {
namespace {

/// Stands for an interpreter kernel. A launch names the kernel by the address of this object.
struct Kernel {
  enum Runs { all, whole_exchanges, exchanges };
  DType dtype;
  PacketForm packet;
  Runs runs;
};

const Kernel* kernel_of(DType dtype, PacketForm packet, Kernel::Runs runs) {
  static const auto* const all = [] {
    auto* const made = new std::array<std::array<std::array<Kernel, 3>, std::size(packet_form_names)>,
                                      std::size(all_dtypes)>;
    for (const DType one : all_dtypes) {
      for (size_t form = 0; form < std::size(packet_form_names); ++form) {
        for (const Kernel::Runs each : {Kernel::all, Kernel::whole_exchanges, Kernel::exchanges})
          (*made)[size_t(one)][form][each] = {one, PacketForm(form), each};
      }
    }
    return made;
  }();
  return &(*all)[size_t(dtype)][size_t(packet)][runs];
}

/// Runs a thread block of a launch as a fiber.
class Block final : public fibers::Fiber, public fibers::BlockHost {
 public:
  Block(cpu::Run& run, uint32_t number)
      : Fiber(fibers::block_stack_bytes),
        run_(run),
        number_(number),
        memory_(cpu::Interpreter::memory_bytes(*run.program)) {}

  bool ended() const { return ended_; }
  Stop result() const { return result_; }
  /// Goes on unless the block waits.
  /// \returns false if it waits
  bool go_on() {
    if (ready_ && !ready_(state_) && stopped() == Stop::none) return false;
    ended_ = resume();
    return true;
  }

  void park(bool (*ready)(const void*), const void* state) override {
    ready_ = ready;
    state_ = state;
    suspend();
    ready_ = nullptr;
  }
  void park_at_barrier(bool (*ready)(const void*), const void* state) override { park(ready, state); }
  void step() override { suspend(); }
  void sync() override {}  // it has one thread
  void moved() override {}
  Stop stopped() override { return Stop(load_acquire(&run_.deadline.shared->stop)); }

 private:
  void run() override { result_ = cpu::Interpreter(run_, number_, *this, memory_.data()).run(); }

  cpu::Run& run_;
  const uint32_t number_;
  std::vector<char> memory_;
  bool (*ready_)(const void*) = nullptr;
  const void* state_ = nullptr;
  bool ended_ = false;
  Stop result_ = Stop::none;
};

lowering::DeviceProgram program_of(const cuda::Launch& launch, uint32_t blocks) {
  lowering::DeviceProgram program;
  program.blocks = blocks;
  program.page = launch.page;
  program.pages = launch.pages;
  program.state_bytes = launch.state_bytes;
  program.most_plain = launch.page.plain;
  program.most_packets = launch.page.packets;
  program.bytes.assign(launch.program,
                       launch.program + uint64_t(blocks) * launch.pages * launch.page.bytes());
  return program;
}

/// Tells the host why a block has stopped, as interpreter.cuh does.
void leave_stop(const cuda::Launch& launch, uint32_t number, const Block& block, uint64_t epoch) {
  const fibers::Waiting& waiting = block.waiting();
  cuda::StopRecord& to = launch.stops[number];
  to.op = waiting.op_index;
  to.peer = waiting.peer;
  to.waits_on_word = waiting.word != nullptr;
  to.expected = waiting.word ? waiting.expected : epoch;
  to.seen = waiting.word ? load_relaxed(waiting.word) : 0;
  store_release(&to.reason, uint32_t(block.result()));
}

/// Ends the program if a kernel cannot run a launch.
void require_kernel(const Kernel& kernel, const cuda::Launch& launch,
                    const lowering::DeviceProgram& program) {
  if (kernel.runs == Kernel::all) return;
  if (launch.publication.from_peers) die("the kernels of exchange.cuh publish no buffers");
  if (program.pages != 1) die("the kernels of exchange.cuh run one page");
  const bool aligned =
      (reinterpret_cast<uint64_t>(launch.in) | reinterpret_cast<uint64_t>(launch.out)) % unit_bytes == 0;
  for (uint32_t block = 0; block < program.blocks; ++block) {
    const char* const page = program.bytes.data() + uint64_t(block) * program.page.bytes();
    const uint32_t steps = reinterpret_cast<const lowering::PageHeader*>(page)->steps;
    for (uint32_t at = 0; at < steps; ++at) {
      const auto& step =
          reinterpret_cast<const lowering::ProgramStep*>(page + sizeof(lowering::PageHeader))[at];
      if (step.kind == lowering::ProgramStepKind::sync) continue;
      if (step.kind < lowering::ProgramStepKind::copy ||
          step.kind > lowering::ProgramStepKind::reduce_packets ||
          step.kind == lowering::ProgramStepKind::reduce) {
        die("the kernels of exchange.cuh have no such step");
      }
      if (kernel.runs == Kernel::whole_exchanges && !(aligned && step.whole != 0))
        die("a kernel moves only whole units, and got a step with others");
    }
  }
}

void run_blocks(const Kernel& kernel, const cuda::Launch& launch, uint32_t blocks) {
  const auto state_of = [&](uint32_t block) {
    return reinterpret_cast<lowering::BlockState*>(launch.states + size_t(block) * launch.state_bytes);
  };
  if (blocks == 0 || state_of(0)->stopped != 0) return;
  const lowering::DeviceProgram program = program_of(launch, blocks);
  require_kernel(kernel, launch, program);
  cpu::Run run;
  run.program = &program;
  run.states = launch.states;
  run.rank = launch.rank;
  run.packet = kernel.packet;
  run.dtype = kernel.dtype;
  run.epoch = state_of(0)->epoch + 1;
  run.deadline = {launch.abort, launch.timeout_ns, 0};
  run.in = launch.in;
  run.out = launch.out;
  run.skip = launch.skip;
  run.gaps = launch.gaps;
  run.trace = launch.trace;
  const cuda::Publication& publication = launch.publication;
  std::vector<lowering::Published*> from_peers;
  for (uint32_t peer = 0; peer < publication.ranks; ++peer) {
    // The kernel moves whole units at a peer's buffers, and knows of no other alignment there.
    if ((publication.in[peer] | publication.out[peer]) % 16 != 0)
      die("a launch publishes an address that is not aligned to 16 bytes");
    lowering::Published& there = *publication.at_peers[peer];
    store_relaxed(&there.in, publication.in[peer]);
    store_relaxed(&there.out, publication.out[peer]);
    store_relaxed(&there.in_gap, launch.gaps.in);
    store_relaxed(&there.out_gap, launch.gaps.out);
    store_release(&there.epoch, run.epoch);
  }
  if (publication.from_peers) {
    for (uint32_t peer = 0; peer < cuda::Publication::most_ranks; ++peer)
      from_peers.push_back(const_cast<lowering::Published*>(publication.from_peers) + peer);
  }
  run.published = from_peers.data();
  std::vector<std::unique_ptr<Block>> all;
  for (uint32_t block = 0; block < blocks; ++block) all.push_back(std::make_unique<Block>(run, block));
  const auto is_left = [](const std::unique_ptr<Block>& block) { return !block->ended(); };
  while (std::any_of(all.begin(), all.end(), is_left)) {
    bool moved = false;
    for (const std::unique_ptr<Block>& block : all) moved = (!block->ended() && block->go_on()) || moved;
    // This thread polls, because nothing wakes it when a wait of a block is over.
    if (!moved) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  for (uint32_t block = 0; block < blocks; ++block) {
    const bool stopped = all[block]->result() != Stop::none;
    state_of(block)->epoch = run.epoch - (stopped ? 1 : 0);
    state_of(block)->stopped = stopped;
    if (stopped) leave_stop(launch, block, *all[block], run.epoch);
  }
}

}  // namespace
}  // namespace chorale::test::fake

namespace chorale::cuda {

using namespace test::fake;

Interpreters interpreters_of(DType dtype, PacketForm packet, bool) {
  return {kernel_of(dtype, packet, Kernel::all), kernel_of(dtype, packet, Kernel::whole_exchanges),
          packet == PacketForm::ll128 ? nullptr : kernel_of(dtype, packet, Kernel::exchanges)};
}
const void* multicast_interpreter_of(DType, PacketForm, bool) { return nullptr; }
const void* coded_interpreter_of(DType dtype, PacketForm packet) {
  return has_codecs(dtype) && packet == PacketForm::ll16 ? kernel_of(dtype, packet, Kernel::all) : nullptr;
}
cudaError_t load_average() { return cudaSuccess; }
cudaError_t enqueue_average(void* elements, uint64_t n, DType dtype, uint32_t ranks, cudaStream_t stream) {
  enqueue(stream,
          [=] { cpu::reduction(ReduceOp::avg, dtype).divide(static_cast<char*>(elements), n, ranks); });
  return cudaSuccess;
}

cudaError_t enqueue_scale(void* out, const void* in, uint64_t n, DType dtype, const Factor& factor,
                          cudaStream_t stream) {
  enqueue(stream, [=] { cpu::scale(out, in, n, dtype, factor); });
  return cudaSuccess;
}

}  // namespace chorale::cuda

using namespace chorale::test::fake;

extern "C" {

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** parameters) {
  const auto launch = *static_cast<const chorale::cuda::Launch*>(parameters[0]);
  if (launch.fifo.slots) die("the interpreter of the fake CUDA has no port channels");
  note_blocks(config->gridDim.x);
  enqueue(config->stream, [launch, kernel, blocks = config->gridDim.x] {
    run_blocks(*static_cast<const Kernel*>(kernel), launch, blocks);
  });
  return cudaSuccess;
}

}  // extern "C"
