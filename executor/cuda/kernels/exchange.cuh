/// \file
/// This kernel is for programs that only exchange packets. Their messages are short. The time is the latency
/// of one or two exchanges, plus the work of a block before and after them.
///
/// The kernel avoids costs in that time. A GPU fetches code slowly the first time, so the code is short and
/// contiguous. While it waits for its turn, the block fetches its page and computes the places' addresses for
/// both banks. While it asks for its number, it loads the data that it sends first. data_steps.cuh and
/// batches.cuh define the meaning of the steps, as for every program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "interpreter.cuh"

namespace chorale::cuda {

/// Gives access to the places of a page when both addresses of each are known. If Whole is true, each unit of
/// a place exists as a whole or, past its valid bytes, not at all.
template <class End, bool Whole>
struct Banked {
  const ProgramPlace* places;
  uint32_t bank;  ///< offset from a place to its address in this launch, in bytes
  uint32_t flag;
  const Deadline* deadline;

  CHORALE_FN End operator[](uint32_t at) const {
    void* const address = *reinterpret_cast<char* const*>(reinterpret_cast<const char*>(places + at) + bank);
    if constexpr (std::is_same<End, Mem>::value) {
      return Mem(address, Whole ? unlimited : places[at].valid);
    } else {
      return End(address, flag, deadline);
    }
  }
  CHORALE_FN Banked operator+(uint32_t n) const { return {places + n, bank, flag, deadline}; }
};

template <class End, bool Whole>
CHORALE_FN uint64_t valid_at(const Banked<End, Whole>& at) {
  return at.places->valid;
}

/// Replaces the first two words of each place by its addresses in launches of odd and of even number. Before,
/// the words are the address for odd numbers and the difference for even ones.
CHORALE_FN void settle_banks(const Launch& launch, ProgramPlace* places) {
  static_assert(offsetof(ProgramPlace, at) == 0 && offsetof(ProgramPlace, even) == 8, "as Banked finds them");
  for (uint32_t at = threadIdx.x; at < launch.page.plain + launch.page.packets; at += blockDim.x) {
    const ProgramPlace place = places[at];
    places[at].at = reinterpret_cast<uint64_t>(place.settled(1, launch.in, launch.out, launch.skip));
    places[at].even = reinterpret_cast<uint64_t>(place.settled(2, launch.in, launch.out, launch.skip));
  }
}

/// Starts to load the data that the first step copies, if its address does not depend on the launch's number.
CHORALE_FN void prefetch_source(const Group& group, const ProgramStep* steps, const ProgramPlace* plain) {
  if (steps->kind != ProgramStepKind::copy) return;
  const uint32_t units = uint32_t(units_of(steps->bytes));
  const uint32_t step = steps->batch == 1 ? 0 : group.rank / units;
  if (step >= steps->batch) return;
  const ProgramPlace& place = plain[steps[step].first_plain];
  const uint32_t unit = group.rank - step * units;
  if (unit >= units || place.at != place.even || unit * unit_bytes >= place.valid) return;
  asm volatile("prefetch.global.L1 [%0];" ::"l"(place.at + uint64_t(unit) * unit_bytes));
}

/// Runs a copy that has more than one unit per thread.
template <class P, bool Whole, class Of>
CHORALE_FN Stop copy_long(const Group& group, const ProgramStep& step, const Of& page) {
  constexpr bool lines = detail::by_line<Packets<P>>;
  const auto plain = page.plain + step.first_plain;
  const auto packets = page.packets + step.first_packets;
  if (step.kind == ProgramStepKind::unpack) {
    const auto sinks = sinks_of(step, plain, packets + 1);
    if constexpr (Whole)
      return group.agree(copy_whole<lines>(group, extent_of<P>(step, plain), packets[0], sinks));
    return group.agree(copy_parts(group, step.bytes, packets[0], sinks));
  }
  if (copies_onto_itself(step, page)) return Stop::none;
  const auto sinks = sinks_of(step, plain + 1, packets);
  if constexpr (!Whole) return copy_parts(group, step.bytes, plain[0], sinks);
  const Extent extent = extent_of<P>(step, plain);
  if (has_lines<P>(step)) return copy_whole<lines>(group, extent, plain[0], sinks);
  // Copy one unit at a time. A burst of packets would delay those of the other warps, for which the peer
  // waits.
  return copy_whole<false, 1>(group, extent, plain[0], sinks);
}

/// Runs the programs. T is the element type, or void in a kernel for plans that do not reduce. P is the
/// packet form. Every block has one page; see is_exchange(). If Whole is true, all units must be whole and
/// aligned. If it is false, addresses and numbers of bytes may be any, but P must have no lines.
template <class T, class P, bool Whole>
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
  // Before this wait a block may read only memory that no launch changes, as in interpret().
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const BlockState state = *kept;
  const ProgramStep* const first = reinterpret_cast<const ProgramStep*>(page_at + 16);
  const uint32_t steps = reinterpret_cast<const PageHeader*>(page_at)->steps;
  prefetch_source(group, first, places);
  if (state.stopped != 0) return;
  if (launch.next_beside) asm volatile("griddepcontrol.launch_dependents;");

  const uint64_t epoch = state.epoch + 1;
  const uint32_t bank = epoch % 2 == 0 ? uint32_t(sizeof(uint64_t)) : 0;
  using Plain = Banked<Mem, Whole>;
  using Slots = Banked<Packets<P>, Whole>;
  const Page<P, Plain, Slots> page{first, nullptr, Plain{places, bank, 0, nullptr},
                                   Slots{places + shape.plain, bank, uint32_t(epoch), &shared.deadline}};
  Stop stop = Stop::none;
  uint32_t op = ~0u;
  for (uint32_t at = 0; at < steps && stop == Stop::none;) {
    const ProgramStep& step = page.steps[at];
    op = step.op;
    if (step.kind == ProgramStepKind::copy || step.kind == ProgramStepKind::unpack) {
      if (step.bytes > uint64_t(group.size) * unit_bytes) {
        stop = copy_long<P, Whole>(group, step, page);
        ++at;
        continue;
      }
      stop = run_batch<P, Whole>(group, &step, page, shared.stop.op);
      at += step.batch;
      continue;
    }
    ++at;
    if (step.kind == ProgramStepKind::sync) {
      group.sync();
    } else if constexpr (!std::is_void<T>::value) {
      stop = group.agree(reduce_packets_step<ReduceOp::sum, T, P, true, Whole>(
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
