/// \file
/// This kernel is for programs that only exchange packets. Their messages are short: the time is the latency
/// of one or two exchanges, and whatever a block does before and after them.
///
/// It avoids what costs time there. A GPU fetches code slowly that it has not run before, so the code is
/// short and lies in one piece. The block fetches its page, and makes addresses of either bank from the
/// places, while it waits for its turn. It loads what it sends first while it asks for its number.
/// data_steps.cuh and batches.cuh define what the steps mean, as for every program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "interpreter.cuh"

namespace chorale::cuda {

/// The places of a page, when both addresses of each are known.
template <class End>
struct Banked {
  const ProgramPlace* places;
  uint32_t bank;  ///< bytes from a place to the address in this launch
  uint32_t flag;
  const Deadline* deadline;

  CHORALE_FN End operator[](uint32_t at) const {
    void* const address = *reinterpret_cast<char* const*>(reinterpret_cast<const char*>(places + at) + bank);
    if constexpr (std::is_same<End, Mem>::value) {
      return Mem(address, unlimited);  // whole units only are moved here
    } else {
      return End(address, flag, deadline);
    }
  }
  CHORALE_FN Banked operator+(uint32_t n) const { return {places + n, bank, flag, deadline}; }
};

/// Replaces the two words of each place by its addresses in launches of odd and of even number. The words
/// were an address for launches of odd number, and what to add to it in the others.
CHORALE_FN void settle_banks(const Launch& launch, ProgramPlace* places) {
  static_assert(offsetof(ProgramPlace, at) == 0 && offsetof(ProgramPlace, even) == 8, "as Banked finds them");
  for (uint32_t at = threadIdx.x; at < launch.page.plain + launch.page.packets; at += blockDim.x) {
    const ProgramPlace place = places[at];
    places[at].at = reinterpret_cast<uint64_t>(place.settled(1, launch.in, launch.out, launch.skip));
    places[at].even = reinterpret_cast<uint64_t>(place.settled(2, launch.in, launch.out, launch.skip));
  }
}

/// Begins to load what the first step copies, if its address does not depend on the launch's number.
CHORALE_FN void prefetch_source(const Group& group, const ProgramStep* steps, const ProgramPlace* plain) {
  if (steps->kind != StepKind::copy) return;
  const uint32_t units = uint32_t(steps->bytes / unit_bytes);
  const uint32_t step = steps->batch == 1 ? 0 : group.rank / units;
  if (step >= steps->batch) return;
  const ProgramPlace& place = plain[steps[step].first_plain];
  const uint32_t unit = group.rank - step * units;
  if (unit >= units || place.at != place.even) return;
  asm volatile("prefetch.global.L1 [%0];" ::"l"(place.at + uint64_t(unit) * unit_bytes));
}

/// Runs a copy that has more than one unit per thread.
template <class P, class Of>
CHORALE_FN Stop copy_long(const Group& group, const ProgramStep& step, const Of& page) {
  const auto plain = page.plain + step.first_plain;
  const auto packets = page.packets + step.first_packets;
  if (step.kind == StepKind::unpack) {
    return group.agree(copy_whole<detail::by_line<Packets<P>>>(group, step.bytes, packets[0],
                                                               sinks_of(step, plain, packets + 1)));
  }
  const auto sinks = sinks_of(step, plain + 1, packets);
  if (has_lines<P>(step)) return copy_whole<detail::by_line<Packets<P>>>(group, step.bytes, plain[0], sinks);
  // Copy one unit at a time: a burst of packets delays those of the other warps, for which the peer waits.
  return copy_whole<false, 1>(group, step.bytes, plain[0], sinks);
}

/// Runs the programs. T is the element type, or void in a kernel for plans that do not reduce. P is the form
/// of packets. Every block has one page; see is_exchange().
template <class T, class P>
__global__ void __launch_bounds__(most_threads, 1) interpret_exchange(const __grid_constant__ Launch launch) {
  extern __shared__ uint4 room[];
  __shared__ Shared shared;
  const Group group = block_group();
  const PageShape shape = launch.page;
  char* const page_at = reinterpret_cast<char*>(room);
  fetch_page(shape, page_at, launch.program + uint64_t(blockIdx.x) * shape.bytes());
  if (threadIdx.x == 0) {
    shared.deadline = {launch.abort, launch.timeout_ns, 0};
    shared.stop = StopRecord{};
    shared.stop.op = ~0u;
  }
  __syncthreads();
  // The plain places come first, then the packets.
  ProgramPlace* const places = reinterpret_cast<ProgramPlace*>(page_at + shape.plain_at());
  settle_banks(launch, places);
  __syncthreads();
  BlockState* const kept =
      reinterpret_cast<BlockState*>(launch.states + uint64_t(blockIdx.x) * launch.state_bytes);
  // Before this wait a block may read only what no launch changes, as in interpret().
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const BlockState state = *kept;
  const ProgramStep* const first = reinterpret_cast<const ProgramStep*>(page_at + 16);
  const uint32_t steps = reinterpret_cast<const PageHeader*>(page_at)->steps;
  prefetch_source(group, first, places);
  if (state.stopped != 0) return;
  if (launch.next_beside) asm volatile("griddepcontrol.launch_dependents;");

  const uint64_t epoch = state.epoch + 1;
  const uint32_t bank = epoch % 2 == 0 ? uint32_t(sizeof(uint64_t)) : 0;
  using Plain = Banked<Mem>;
  using Slots = Banked<Packets<P>>;
  const Page<P, Plain, Slots> page{first, nullptr, Plain{places, bank, 0, nullptr},
                                   Slots{places + shape.plain, bank, uint32_t(epoch), &shared.deadline}};
  Stop stop = Stop::none;
  uint32_t op = ~0u;
  for (uint32_t at = 0; at < steps && stop == Stop::none;) {
    const ProgramStep& step = page.steps[at];
    op = step.op;
    if (step.kind == StepKind::copy || step.kind == StepKind::unpack) {
      if (step.bytes > uint64_t(group.size) * unit_bytes) {
        stop = copy_long<P>(group, step, page);
        ++at;
        continue;
      }
      stop = run_batch(group, &step, page, shared.stop.op);
      at += step.batch;
      continue;
    }
    ++at;
    if (step.kind == StepKind::sync) {
      group.sync();
    } else if constexpr (!std::is_void<T>::value) {
      stop = group.agree(reduce_packets_step<ReduceOp::sum, T, P, true>(
          group, step, page.plain + step.first_plain, page.packets + step.first_packets));
    }
  }

  if (!launch.next_beside) asm volatile("griddepcontrol.launch_dependents;");
  if (threadIdx.x == 0) {
    *kept = {stop == Stop::none ? epoch : state.epoch, stop != Stop::none};
    if (stop != Stop::none) leave_stop(launch, shared.stop, op, epoch, stop);
  }
}

}  // namespace chorale::cuda
