/// \file
/// These functions run the steps of a program that go through a switch. They implement switch channels by
/// multicast, which runs only when the configuration asks for it by name. They are in a separate kernel, so
/// that the other kernels have no such instruction. The code is compiled, and tests check its instructions;
/// it has not run on hardware.
#pragma once

#include <cstdint>
#include <type_traits>

#include "chorale/device/multicast.hpp"
#include "interpreter.cuh"

namespace chorale::cuda {

/// Writes to plain memory, which may be at an odd address if it is the caller's buffer.
struct PlainSink {
  Mem to;
  bool whole;

  template <bool, uint32_t N>
  CHORALE_FN void write(const Turn& turn, const Unit (&from)[N]) const {
    if (whole) {
      to.template write<true, N>(turn, from);
    } else {
      to.template write<false, N>(turn, from);
    }
  }
};

/// Moves the thread's units four at a time, because a round trip through the switch takes long.
template <class Source, class Sink>
CHORALE_FN void move_through_switch(const Group& group, uint64_t bytes, const Source& source,
                                    const Sink& sink) {
  constexpr uint32_t at_once = 4;
  each_turn<at_once, false>(group, {bytes, bytes}, [&](const Turn& turn) {
    Unit held[at_once];
    source.template read<true, at_once>(group, turn, held);
    sink.template write<true, at_once>(turn, held);
    return Stop::none;
  });
}

template <ReduceOp Op, class T>
CHORALE_FN void reduce_through_switch(const Group& group, const ProgramStep& step, const Mem* places,
                                      bool whole) {
  if constexpr (detail::LoadReduce<Op, T>::exists) {  // other combinations are refused when a plan is bound
    const MulticastReduced<Op, T> source{places[0].data};
    if (step.kind == ProgramStepKind::multicast_pass) {
      move_through_switch(group, step.bytes, source, MulticastStore{places[1].data});
    } else {
      move_through_switch(group, step.bytes, source, PlainSink{places[1], whole});
    }
  }
}

/// Reads plain memory, which may be at an odd address if it is the caller's buffer.
struct PlainSource {
  Mem from;
  bool whole;

  template <bool, uint32_t N>
  CHORALE_FN Stop read(const Group& group, const Turn& turn, Unit (&to)[N]) const {
    return whole ? from.template read<true, N>(group, turn, to)
                 : from.template read<false, N>(group, turn, to);
  }
};

struct MulticastSteps {
  static CHORALE_FN constexpr bool has(ProgramStepKind kind) {
    return kind >= ProgramStepKind::multicast_reduce;
  }

  /// Runs one step. Before and after it the block uses the members' own addresses, so each thread fences on
  /// both sides, next to its own accesses.
  template <class T, class P>
  static __device__ __noinline__ Stop run(const ProgramStep& step, const Page<P>& page, uint32_t misaligned) {
    const Group group = block_group();
    const Mem* const places = page.plain + step.first_plain;
    const bool whole = (step.passed & misaligned) == 0;
    fence_alias();
    if (step.kind == ProgramStepKind::multicast_store) {
      move_through_switch(group, step.bytes, PlainSource{places[0], whole}, MulticastStore{places[1].data});
    } else if constexpr (!std::is_void<T>::value) {
      switch (ReduceOp(step.reduce_op)) {
        case ReduceOp::min:
          reduce_through_switch<ReduceOp::min, T>(group, step, places, whole);
          break;
        case ReduceOp::max:
          reduce_through_switch<ReduceOp::max, T>(group, step, places, whole);
          break;
        default:  // avg is divided at the end
          reduce_through_switch<ReduceOp::sum, T>(group, step, places, whole);
          break;
      }
    }
    fence_alias();
    return Stop::none;
  }
};

}  // namespace chorale::cuda
