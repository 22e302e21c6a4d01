// Instantiates the device library in kernels. It is compiled, and ptx.py reads what comes out; running it is
// not its purpose.

#include <chorale/device.hpp>

using namespace chorale;

/// All forms of waiting and posting, by a block.
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

/// One acquire, one release: ptx.py looks for exactly these.
extern "C" __global__ void one_post(Signal* peer) { signal_set(block_group(), peer, 1); }
extern "C" __global__ void one_wait(const Signal* mine, uint32_t* out) {
  out[threadIdx.x] = uint32_t(wait_until(block_group(), mine, Cmp::ge, 1));
}

/// Groups of every scope, and what they do.
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

extern "C" __global__ void send_ll16(const char* from, char* slots, uint64_t bytes, uint32_t flag) {
  transfer(block_group(), bytes, Mem(from), Packets<LL16>(slots, flag));
}
extern "C" __global__ void send_ll8(const char* from, char* slots, uint64_t bytes, uint32_t flag) {
  transfer(block_group(), bytes, Mem(from), Packets<LL8>(slots, flag));
}
extern "C" __global__ void receive_ll16(const char* slots, char* to, uint64_t bytes, uint32_t flag,
                                        Deadline deadline, Stop* out) {
  out[threadIdx.x] = transfer(block_group(), bytes, Packets<LL16>(slots, flag, &deadline), Mem(to));
}

/// Sums of what up to seven peers sent, and of what they hold, at the block size that plans run with: ptx.py
/// looks at the order of their loads and at their registers.
extern "C" __global__ void __launch_bounds__(512)
    reduce_packets(const Mem* mems, const Packets<LL16>* peers, uint32_t n, uint64_t bytes, Stop* out) {
  const Reduced<ReduceOp::sum, bf16, Mem, Packets<LL16>> sum{mems[0], peers, n};
  out[threadIdx.x] = transfer(block_group(), bytes, sum, mems[1]);
}
extern "C" __global__ void __launch_bounds__(512)
    reduce_memory(const Mem* mems, const Mem* peers, uint32_t n, uint64_t bytes) {
  transfer(block_group(), bytes, Reduced<ReduceOp::sum, bf16>{mems[0], peers, n}, mems[1]);
}
extern "C" __global__ void __launch_bounds__(512)
    reduce_members(char* const* members, uint32_t n, uint64_t bytes) {
  transfer(block_group(), bytes, Multi<ReduceOp::sum, bf16>{members, n}, MultiStore{members, n});
}

extern "C" __global__ void copy(const char* from, char* to, uint64_t bytes, uint64_t valid) {
  transfer(block_group(), bytes, Mem(from, valid), Mem(to, valid));
}

/// The data-moving operations of a plan, for one operation and type; one at a time, as a plan runs them.
template <ReduceOp Op, class T>
__device__ void all_transfers(uint32_t which, const Mem* mems, const Packets<LL16>* ll16,
                              const Packets<LL8>* ll8, char* const* members, uint32_t n, uint64_t bytes) {
  const Group block = block_group();
  const Many<Mem> to_peers{mems, n};
  const Many<Packets<LL16>> ll16_to_peers{ll16, n};
  switch (which) {
    case 0:
      transfer(block, bytes, mems[0], to_peers);
      break;
    case 1:
      transfer(block, bytes, Reduced<Op, T>{mems[0], mems, n}, Tee{mems[1], to_peers});
      break;
    case 2:
      transfer(block, bytes, Reduced<Op, T, Mem, Packets<LL16>>{mems[0], ll16, n},
               Tee{mems[1], Tee{ll16[0], ll16_to_peers}});
      break;
    case 3:
      transfer(block, bytes, Reduced<Op, T, Mem, Packets<LL8>>{mems[0], ll8, n}, Many<Packets<LL8>>{ll8, n});
      break;
    case 4:
      transfer(block, bytes, ll16[1], ll16_to_peers);
      break;
    case 5:
      transfer(block, bytes, Multi<Op, T>{members, n, 0, unlimited, n}, MultiStore{members, n});
      break;
  }
}

extern "C" __global__ void __launch_bounds__(512)
    every_transfer_f32(uint32_t which, const Mem* mems, const Packets<LL16>* ll16, const Packets<LL8>* ll8,
                       char* const* members, uint32_t n, uint64_t bytes) {
  all_transfers<ReduceOp::sum, float>(which, mems, ll16, ll8, members, n, bytes);
}
extern "C" __global__ void __launch_bounds__(512)
    every_transfer_f16(uint32_t which, const Mem* mems, const Packets<LL16>* ll16, const Packets<LL8>* ll8,
                       char* const* members, uint32_t n, uint64_t bytes) {
  all_transfers<ReduceOp::avg, f16>(which, mems, ll16, ll8, members, n, bytes);
}

extern "C" __global__ void __launch_bounds__(512)
    every_type(const Mem* mems, uint32_t n, uint64_t bytes, DType type) {
  with_dtype(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    transfer(block_group(), bytes, Reduced<ReduceOp::sum, T>{mems[0], mems, n}, mems[1]);
  });
}

/// The operations, for a type of each kind.
extern "C" __global__ void __launch_bounds__(512)
    every_op(const Mem* mems, uint32_t n, uint64_t bytes, ReduceOp op) {
  with_reduce_op(op, [&](auto tag) {
    constexpr ReduceOp which = decltype(tag)::value;
    transfer(block_group(), bytes, Reduced<which, float>{mems[0], mems, n}, mems[1]);
    transfer(block_group(), bytes, Reduced<which, bf16>{mems[0], mems, n}, mems[1]);
    transfer(block_group(), bytes, Reduced<which, int8_t>{mems[0], mems, n}, mems[1]);
  });
}
