#include <chorale/device.hpp>

#include "kernels.hpp"

namespace chorale::litmus {

struct Room {
  Signal arrived, answered;
  uint64_t words[threads * words_apart];
  LL8 packets[threads * words_apart];
};

uint64_t room_bytes() { return sizeof(Room); }

namespace {

// Plain accesses are those of the operations of a plan. The compiler neither moves nor drops them.
__device__ void store_plain(uint64_t* to, uint64_t value) {
  asm volatile("st.weak.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
__device__ uint64_t load_plain(const uint64_t* from) {
  uint64_t value;
  asm volatile("ld.weak.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}

/// Returns the thread whose word the calling thread reads, which is never its own.
__device__ uint32_t other_thread() { return (threadIdx.x + threads / 2 + 1) % threads; }

__device__ void count_stale(Tally* tally, bool stale) {
  if (stale) atomicAdd(reinterpret_cast<unsigned long long*>(&tally->stale), 1ull);
}

__device__ void finish(Tally* tally, uint64_t rounds, Stop stop) {
  if (threadIdx.x != 0) return;
  tally->rounds = rounds;
  tally->stop = uint32_t(stop);
}

__global__ void message_writer(Room* mine, Room* peers, uint64_t rounds, Publish publish, Deadline deadline,
                               Tally* tally) {
  const Group block = block_group();
  Stop stop = Stop::none;
  uint64_t round = 1;
  for (; round <= rounds && stop == Stop::none; ++round) {
    store_plain(&peers->words[threadIdx.x * words_apart], round);
    block.sync();
    signal_add(block, &peers->arrived, 1, publish == Publish::relaxed);
    stop = wait_until(block, &mine->answered, Cmp::ge, round, deadline);
  }
  finish(tally, round - 1, stop);
}

__global__ void message_reader(Room* mine, Room* peers, uint64_t rounds, Look look, Deadline deadline,
                               Tally* tally) {
  const Group block = block_group();
  Stop stop = Stop::none;
  uint64_t round = 1;
  for (; round <= rounds && stop == Stop::none; ++round) {
    stop = wait_until(block, &mine->arrived, Cmp::ge, round, deadline, look == Look::relaxed);
    if (stop != Stop::none) break;
    count_stale(tally, load_plain(&mine->words[other_thread() * words_apart]) != round);
    signal_add(block, &peers->answered);
  }
  finish(tally, round - 1, stop);
}

__global__ void packet_writer(Room* mine, Room* peers, uint64_t rounds, Deadline deadline, Tally* tally) {
  const Group block = block_group();
  Stop stop = Stop::none;
  uint64_t round = 1;
  for (; round <= rounds && stop == Stop::none; ++round) {
    store_plain(&peers->words[threadIdx.x * words_apart], round);
    block.sync();
    LL8::write(&peers->packets[threadIdx.x * words_apart], {{~uint32_t(round)}}, uint32_t(round));
    stop = wait_until(block, &mine->answered, Cmp::ge, round, deadline);
  }
  finish(tally, round - 1, stop);
}

__global__ void packet_reader(Room* mine, Room* peers, uint64_t rounds, Deadline deadline, Tally* plain,
                              Tally* carried) {
  const Group block = block_group();
  Stop stop = Stop::none;
  uint64_t round = 1;
  for (; round <= rounds && stop == Stop::none; ++round) {
    LL8::Payload payload{};
    const LL8* const slot = &mine->packets[threadIdx.x * words_apart];
    const auto came = [&]() -> bool { return LL8::try_read(slot, uint32_t(round), payload); };
    stop = block.agree(spin_until(block, deadline, came));
    if (stop != Stop::none) break;
    count_stale(plain, load_plain(&mine->words[other_thread() * words_apart]) != round);
    count_stale(carried, payload.data[0] != ~uint32_t(round));
    signal_add(block, &peers->answered);
  }
  finish(plain, round - 1, stop);
  finish(carried, round - 1, stop);
}

__global__ void alias(uint64_t* stores, const uint64_t* loads, uint64_t rounds, Between between,
                      Tally* tally) {
  const Group block = block_group();
  for (uint64_t round = 1; round <= rounds; ++round) {
    store_plain(&stores[threadIdx.x * words_apart], round);
    if (between == Between::fence) fence_system();
    if (between == Between::proxy_fence) asm volatile("fence.proxy.alias;" ::: "memory");
    block.sync();
    if (between == Between::fence) fence_system();
    if (between == Between::proxy_fence) asm volatile("fence.proxy.alias;" ::: "memory");
    count_stale(tally, load_plain(&loads[other_thread() * words_apart]) != round);
    block.sync();
  }
  finish(tally, rounds, Stop::none);
}

__device__ uint32_t element(uint32_t rank, uint64_t at, uint64_t round) {
  return uint32_t((at + 1) * 2654435761u) ^ uint32_t(round * 40503u + rank * 977u);
}

__global__ void fill(uint32_t* input, uint64_t n, uint32_t rank, const uint64_t* round) {
  for (uint64_t at = threadIdx.x; at < n; at += threads) input[at] = element(rank, at, *round);
}

__global__ void compare(const uint32_t* output, uint64_t n, uint32_t ranks, uint32_t times, uint64_t* round,
                        Tally* tally) {
  for (uint64_t at = threadIdx.x; at < n; at += threads) {
    uint32_t sum = 0;
    for (uint32_t rank = 0; rank < ranks; ++rank) sum += element(rank, at, *round);
    count_stale(tally, output[at] != times * sum);
  }
  __syncthreads();
  if (threadIdx.x == 0) tally->rounds = ++*round;
}

Deadline deadline_of(uint64_t timeout_ns) { return {nullptr, timeout_ns, 0}; }

}  // namespace

void launch_message_writer(Room* mine, Room* peers, uint64_t rounds, Publish publish, uint64_t timeout_ns,
                           Tally* tally, void* stream) {
  message_writer<<<1, threads, 0, cudaStream_t(stream)>>>(mine, peers, rounds, publish,
                                                          deadline_of(timeout_ns), tally);
}
void launch_message_reader(Room* mine, Room* peers, uint64_t rounds, Look look, uint64_t timeout_ns,
                           Tally* tally, void* stream) {
  message_reader<<<1, threads, 0, cudaStream_t(stream)>>>(mine, peers, rounds, look, deadline_of(timeout_ns),
                                                          tally);
}
void launch_packet_writer(Room* mine, Room* peers, uint64_t rounds, uint64_t timeout_ns, Tally* tally,
                          void* stream) {
  packet_writer<<<1, threads, 0, cudaStream_t(stream)>>>(mine, peers, rounds, deadline_of(timeout_ns), tally);
}
void launch_packet_reader(Room* mine, Room* peers, uint64_t rounds, uint64_t timeout_ns, Tally* plain,
                          Tally* carried, void* stream) {
  packet_reader<<<1, threads, 0, cudaStream_t(stream)>>>(mine, peers, rounds, deadline_of(timeout_ns), plain,
                                                         carried);
}
void launch_alias(uint64_t* stores, const uint64_t* loads, uint64_t rounds, Between between, Tally* tally) {
  alias<<<1, threads>>>(stores, loads, rounds, between, tally);
}
void launch_fill(uint32_t* input, uint64_t n, uint32_t rank, const uint64_t* round, void* stream) {
  fill<<<1, threads, 0, cudaStream_t(stream)>>>(input, n, rank, round);
}
void launch_compare(const uint32_t* output, uint64_t n, uint32_t ranks, uint32_t times, uint64_t* round,
                    Tally* tally, void* stream) {
  compare<<<1, threads, 0, cudaStream_t(stream)>>>(output, n, ranks, times, round, tally);
}

}  // namespace chorale::litmus
