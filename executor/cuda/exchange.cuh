/// \file
/// The player for tapes that only exchange packets: short messages, of which the time is the latency of one
/// or two exchanges and whatever a block does before and after.
///
/// It gives up what costs time there. A GPU fetches code slowly that it has not run before, so there is
/// little of it and it lies in one piece; a page is fetched with one load a thread, which is under way while
/// the block waits for its turn and asks for its number; places become addresses where they are used. What
/// its steps mean is in data_steps.cuh and batches.cuh, as for every tape.
#pragma once

#include "player.cuh"

namespace chorale::cuda {

/// What makes addresses of places.
struct Settling {
  uint64_t epoch;
  char *in, *out;
  const Deadline* deadline;
};

/// Places as they lie in a page, settled when they are looked at.
template <class End>
struct Unsettled {
  const TapePlace* places;
  Settling how;

  CHORALE_FN End operator[](uint32_t at) const {
    const TapePlace place = places[at];
    void* const address = place.settled(how.epoch, how.in, how.out);
    if constexpr (std::is_same<End, Mem>::value) {
      return Mem(address, place.valid);
    } else {
      return End(address, uint32_t(how.epoch), how.deadline);
    }
  }
  CHORALE_FN Unsettled operator+(uint32_t n) const { return {places + n, how}; }
};

/// The steps with a sum in them, of which there is one in most tapes.
template <class T, class P, class Of>
CHORALE_FN Stop run_sum(const Group& group, const TapeStep& step, const Of& page) {
  const auto plain = page.plain + step.first_plain;
  const auto packets = page.packets + step.first_packets;
  const uint32_t n = step.n;
  if (step.kind == TapeKind::reduce_packets) {
    return reduce_whole<ReduceOp::sum, T, 1, detail::by_line<Packets<P>>>(
        group, step.bytes, plain[0], packets, n, sinks_of(step, plain + 1, packets + n));
  }
  const auto sum = [&](auto together) {
    return sum_packets_whole<ReduceOp::sum, T, P, decltype(together)::value>(
        group, step.bytes, packets, 1 + n, sinks_of(step, plain, packets + 1 + n));
  };
  // As many as there are, as a rule: no condition stands between the loads.
  constexpr uint32_t most = sizeof(T) == 1 ? 4 : 8;
  if (n < 2) return sum(std::integral_constant<uint32_t, 2>{});
  if (n < 4) return sum(std::integral_constant<uint32_t, 4>{});
  return sum(std::integral_constant<uint32_t, most>{});
}

/// T: the element type, or void in a kernel for plans that do not reduce. P: the form of packets. Every block
/// has one page, of at most one unit a thread; see is_exchange().
template <class T, class P>
__global__ void __launch_bounds__(most_threads, 1) play_exchange(const __grid_constant__ Launch launch) {
  extern __shared__ uint4 room[];
  __shared__ Shared shared;
  const Group group = block_group();
  const PageShape shape = launch.page;
  const uint32_t units = shape.bytes() / 16;
  uint4 mine{};
  if (threadIdx.x < units) {
    mine = reinterpret_cast<const uint4*>(launch.tapes)[uint64_t(blockIdx.x) * units + threadIdx.x];
  }
  BlockState* const kept =
      reinterpret_cast<BlockState*>(launch.states + uint64_t(blockIdx.x) * launch.state_bytes);
  // As in play(): only what no launch changes may be looked at before.
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const BlockState state = *kept;
  if (threadIdx.x < units) room[threadIdx.x] = mine;
  if (threadIdx.x == 0) {
    shared.deadline = {launch.abort, launch.timeout_ns, 0};
    shared.stop = StopRecord{};
    shared.stop.op = ~0u;
  }
  __syncthreads();
  if (state.stopped != 0) return;

  const uint64_t epoch = state.epoch + 1;
  const Settling how{epoch, launch.in, launch.out, &shared.deadline};
  const char* const page_at = reinterpret_cast<const char*>(room);
  using Plain = Unsettled<Mem>;
  using Slots = Unsettled<Packets<P>>;
  const Page<P, Plain, Slots> page{
      reinterpret_cast<const TapeStep*>(page_at + 16), nullptr,
      Plain{reinterpret_cast<const TapePlace*>(page_at + shape.plain_at()), how},
      Slots{reinterpret_cast<const TapePlace*>(page_at + shape.packets_at()), how}};
  const uint32_t steps = reinterpret_cast<const PageHeader*>(page_at)->steps;
  Stop stop = Stop::none;
  uint32_t op = ~0u;
  for (uint32_t at = 0; at < steps && stop == Stop::none;) {
    const TapeStep& step = page.steps[at];
    op = step.op;
    at += step.batch;
    if (step.kind == TapeKind::copy || step.kind == TapeKind::unpack) {
      stop = run_batch(group, &step, page, shared.stop.op);
    } else if (step.kind == TapeKind::sync) {
      group.sync();
    } else if constexpr (!std::is_void<T>::value) {
      stop = group.agree(run_sum<T, P>(group, step, page));
    }
  }

  asm volatile("griddepcontrol.launch_dependents;");
  if (threadIdx.x == 0) {
    *kept = {stop == Stop::none ? epoch : state.epoch, stop != Stop::none};
    if (stop != Stop::none) leave_stop(launch, shared.stop, op, epoch, stop);
  }
}

}  // namespace chorale::cuda
