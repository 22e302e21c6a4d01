// This file instantiates the device library in kernels. It is compiled, and ptx.py reads the result. It does
// not run.

#include <chorale/device.hpp>

using namespace chorale;

/// Uses all forms of waiting and posting with a block.
extern "C" __global__ void posts_and_waits(Signal* peer, Signal* mine, Barrier* barriers,
                                           Semaphore* semaphore, Deadline deadline, uint32_t* out) {
  const Group block = block_group();
  signal_set(block, peer, 1);
  signal_add(block, peer, 2);
  signal_set(block, peer, 3, true);
  signal_add(block, peer, 1, true);
  Stop stop = wait_until(block, mine, Cmp::ge, 1, deadline);
  if (stop == Stop::none) stop = wait_until(block, mine, Cmp::eq, 1, deadline, true);
  arrive(block, barriers);
  if (stop == Stop::none) stop = wait(block, barriers + 1, deadline);
  if (stop == Stop::none) stop = semaphore_acquire(block, semaphore, deadline);
  if (stop == Stop::none) semaphore_release(block, semaphore);
  if (stop == Stop::none) stop = stop_for(block, deadline);
  if (block.leader()) {
    *out = uint32_t(stop);
    if (stop != Stop::none) raise_stop(deadline.shared, stop, 0);
  }
}

/// These kernels have one release and one acquire, which ptx.py looks for.
extern "C" __global__ void one_post(Signal* peer) { signal_set(block_group(), peer, 1); }
extern "C" __global__ void one_wait(const Signal* mine, uint32_t* out) {
  out[threadIdx.x] = uint32_t(wait_until(block_group(), mine, Cmp::ge, 1));
}

/// Uses groups of every scope, and all their functions.
extern "C" __global__ void groups(uint64_t* out, const uint32_t* weights) {
  uint64_t sum = 0;
  for (const Group& group :
       {thread_group(), warp_group(), multiwarp_group(64), block_group(), block_group().warps()}) {
    group.sync();
    sum += group.broadcast(out[group.rank]) + group.broadcast(uint16_t(group.id));
    sum += uint64_t(group.agree(out[0] != 0 ? Stop::aborted : Stop::none));
    sum += group.split(3).part + group.split_interleaved(2).group.id + group.split_weighted(weights, 4).part;
    group.each_contiguous(100, [&](uint64_t item) { sum += item; });
    group.each_strided(100, [&](uint64_t item) { sum -= item; });
  }
  fence_system();
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/// Adds up with a warp. ptx.py looks for the instructions that order its memory.
extern "C" __global__ void sum_of_a_warp(float* values) {
  const Group warp = warp_group();
  values[warp.rank] += 1.0f;
  values[0] = add_up(warp, 2.0f) + values[warp.rank ^ 1];
}

extern "C" __global__ void send_ll16(const char* from, char* slots, uint64_t bytes, uint32_t flag) {
  transfer(block_group(), bytes, Mem(from), Packets<LL16>(slots, flag));
}
extern "C" __global__ void send_ll8(const char* from, char* slots, uint64_t bytes, uint32_t flag) {
  transfer(block_group(), bytes, Mem(from), Packets<LL8>(slots, flag));
}
extern "C" __global__ void send_ll128(const char* from, char* slots, uint64_t bytes, uint32_t flag) {
  transfer(block_group(), bytes, Mem(from), Packets<LL128>(slots, flag));
}
extern "C" __global__ void receive_ll128(const char* slots, char* to, uint64_t bytes, uint32_t flag,
                                         Deadline deadline, Stop* out) {
  out[threadIdx.x] = transfer(block_group(), bytes, Packets<LL128>(slots, flag, &deadline), Mem(to));
}
extern "C" __global__ void receive_ll16(const char* slots, char* to, uint64_t bytes, uint32_t flag,
                                        Deadline deadline, Stop* out) {
  out[threadIdx.x] = transfer(block_group(), bytes, Packets<LL16>(slots, flag, &deadline), Mem(to));
}

/// Adds up the data that up to seven peers sent and the data that they hold, at the block size of plans.
/// ptx.py checks the order of the loads and the number of registers.
extern "C" __global__ void __launch_bounds__(512, 1)
    reduce_packets(const Mem* mems, const Packets<LL16>* peers, uint32_t n, uint64_t bytes, Stop* out) {
  const Reduced<ReduceOp::sum, bf16, Mem, Packets<LL16>> sum{mems[0], peers, n};
  out[threadIdx.x] = transfer(block_group(), bytes, sum, mems[1]);
}
extern "C" __global__ void __launch_bounds__(512, 1)
    reduce_memory(const Mem* mems, const Mem* peers, uint32_t n, uint64_t bytes) {
  transfer(block_group(), bytes, Reduced<ReduceOp::sum, bf16>{mems[0], peers, n}, mems[1]);
}
extern "C" __global__ void __launch_bounds__(512, 1)
    reduce_members(char* const* members, uint32_t n, uint64_t bytes) {
  transfer(block_group(), bytes, Multi<ReduceOp::sum, bf16>{members, n}, MultiStore{members, n});
}

extern "C" __global__ void copy(const char* from, char* to, uint64_t bytes, uint64_t valid) {
  transfer(block_group(), bytes, Mem(from, valid), Mem(to, valid));
}

/// Describes steps of an interpreter, which makes one transfer after the other, each of another kind. If a
/// transfer leaves a value undefined on some path, that value takes registers throughout this loop.
struct Step {
  uint32_t which, n;
  uint64_t bytes;
  const Mem* mems;
  const Packets<LL16>* ll16;
  const Packets<LL8>* ll8;
  char* const* members;
  const Packets<LL128>* lines;
};

template <class Source, class Sink>
__device__ __noinline__ Stop transfer_by_block(uint64_t bytes, Source source, Sink sink) {
  return transfer(block_group(), bytes, source, sink);
}

template <ReduceOp Op, class T>
__device__ Stop one_step(const Step& step) {
  const uint64_t bytes = step.bytes;
  const Mem* const mems = step.mems;
  const Packets<LL16>* const ll16 = step.ll16;
  const uint32_t n = step.n;
  const Many<Mem> to_peers{mems, n};
  const Many<Packets<LL16>> ll16_to_peers{ll16, n};
  const Many<Packets<LL8>> ll8_to_peers{step.ll8, n};
  switch (step.which) {
    case 0:
      return transfer_by_block(bytes, mems[0], to_peers);
    case 1:
      return transfer_by_block(bytes, Reduced<Op, T>{mems[0], mems, n}, to_peers);
    case 2:
      return transfer_by_block(bytes, Reduced<Op, T, Mem, Packets<LL16>>{mems[0], ll16, n},
                               Tee<Mem, Many<Packets<LL16>>>{mems[1], ll16_to_peers});
    case 3:
      return transfer_by_block(bytes, Reduced<Op, T, Mem, Packets<LL8>>{mems[0], step.ll8, n}, ll8_to_peers);
    case 4:
      return transfer_by_block(bytes, ll16[1], ll16_to_peers);
    case 5:
      return transfer_by_block(bytes, Multi<Op, T>{step.members, n, 0, unlimited, n},
                               MultiStore{step.members, n});
    case 6:
      return transfer_by_block(bytes, mems[0], mems[1]);
    case 7:
      return transfer_by_block(bytes, mems[0], ll16[1]);
    case 8:
      return transfer_by_block(bytes, ll16[0], mems[1]);
  }
  return Stop::none;
}

/// Runs the same with lines (LL128), and lines beside every other kind of end.
template <ReduceOp Op, class T>
__device__ Stop one_step_of_lines(const Step& step) {
  const uint64_t bytes = step.bytes;
  const Mem* const mems = step.mems;
  const Packets<LL128>* const lines = step.lines;
  const uint32_t n = step.n;
  const Many<Packets<LL128>> to_peers{lines, n};
  switch (step.which) {
    case 0:
      return transfer_by_block(bytes, mems[0], to_peers);
    case 1:
      return transfer_by_block(bytes, lines[0], mems[1]);
    case 2:
      return transfer_by_block(bytes, lines[0], to_peers);
    case 3:
      return transfer_by_block(bytes, Reduced<Op, T, Mem, Packets<LL128>>{mems[0], lines, n},
                               Tee<Mem, Many<Packets<LL128>>>{mems[1], to_peers});
    case 4:
      return transfer_by_block(bytes, Reduced<Op, T, Packets<LL128>, Packets<LL128>>{lines[0], lines, n},
                               mems[1]);
    case 5:
      return transfer_by_block(bytes, Reduced<Op, T>{mems[0], mems, n}, to_peers);
    case 6:
      return transfer_by_block(bytes, step.ll16[0], to_peers);
    case 7:
      return transfer_by_block(bytes, Reduced<Op, T, Packets<LL16>, Packets<LL128>>{step.ll16[0], lines, n},
                               step.ll16[1]);
    case 8:
      return transfer_by_block(bytes, Multi<Op, T>{step.members, n, 0, unlimited, n}, lines[1]);
  }
  return Stop::none;
}

template <ReduceOp Op, class T, bool Lines>
__device__ void all_steps(const Step* steps, uint32_t n, Stop* out) {
  __shared__ Step now;
  Stop stop = Stop::none;
  for (uint32_t step = 0; step < n && stop == Stop::none; ++step) {
    __syncthreads();
    if (threadIdx.x == 0) now = steps[step];
    __syncthreads();
    stop = Lines ? one_step_of_lines<Op, T>(now) : one_step<Op, T>(now);
  }
  out[threadIdx.x] = stop;
}

extern "C" __global__ void __launch_bounds__(512, 1)
    every_transfer_f32(const Step* steps, uint32_t n, Stop* out) {
  all_steps<ReduceOp::sum, float, false>(steps, n, out);
}
extern "C" __global__ void __launch_bounds__(512, 1)
    every_transfer_f16(const Step* steps, uint32_t n, Stop* out) {
  all_steps<ReduceOp::avg, f16, false>(steps, n, out);
}
extern "C" __global__ void __launch_bounds__(512, 1)
    every_transfer_of_lines(const Step* steps, uint32_t n, Stop* out) {
  all_steps<ReduceOp::sum, bf16, true>(steps, n, out);
}

extern "C" __global__ void __launch_bounds__(512, 1)
    every_type(const Mem* mems, uint32_t n, uint64_t bytes, DType type) {
  with_dtype(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    transfer(block_group(), bytes, Reduced<ReduceOp::sum, T>{mems[0], mems, n}, mems[1]);
  });
}

/// Runs the operations for a type of each kind.
extern "C" __global__ void __launch_bounds__(512, 1)
    every_op(const Mem* mems, uint32_t n, uint64_t bytes, ReduceOp op) {
  with_reduce_op(op, [&](auto tag) {
    constexpr ReduceOp which = decltype(tag)::value;
    transfer(block_group(), bytes, Reduced<which, float>{mems[0], mems, n}, mems[1]);
    transfer(block_group(), bytes, Reduced<which, bf16>{mems[0], mems, n}, mems[1]);
    transfer(block_group(), bytes, Reduced<which, int8_t>{mems[0], mems, n}, mems[1]);
  });
}

/// Combines by a switch. There is a kernel for each row of multimem.def, in which ptx.py looks for the row's
/// instruction.
#define CHORALE_MULTIMEM(dtype, element, op, shape, instruction) \
  extern "C" __global__ void multimem_##dtype##_##op(const char* from, char* to, uint64_t bytes) { \
    transfer(block_group(), bytes, MulticastReduced<ReduceOp::op, element>{from}, Mem(to)); \
  }
#include <chorale/device/multimem.def>

extern "C" __global__ void multimem_pass(char* at, uint64_t bytes) {
  fence_alias();
  transfer(block_group(), bytes, MulticastReduced<ReduceOp::sum, bf16>{at}, MulticastStore{at});
  fence_alias();
}
