/// \file
/// These functions run the steps of a program that move data.
#pragma once

#include <cstdint>
#include <iterator>
#include <type_traits>

#include "chorale/device/engine.hpp"
#include "launch.hpp"

namespace chorale::cuda {

/// Gives access to a page in shared memory. Its places are pointers, or are settled when they are read
/// (exchange.cuh).
template <class P, class MemAt = const Mem*, class PacketsAt = const Packets<P>*>
struct Page {
  const ProgramStep* steps;
  const SyncItem* items;
  MemAt plain;
  PacketsAt packets;
};

/// Writes to all sinks of a step.
template <class MemAt, class PacketsAt>
struct Sinks {
  MemAt plain;
  PacketsAt packets;
  uint32_t n_plain, n_packets;

  template <uint32_t N, bool Whole = true>
  CHORALE_FN void write(const Turn& turn, const Unit (&from)[N]) const {
    // The loops are not unrolled, because a GPU fetches code slowly the first time.
#pragma unroll 1
    for (uint32_t sink = 0; sink < n_plain; ++sink) plain[sink].template write<Whole, N>(turn, from);
#pragma unroll 1
    for (uint32_t sink = 0; sink < n_packets; ++sink) packets[sink].template write<Whole, N>(turn, from);
  }
};

template <class MemAt, class PacketsAt>
CHORALE_FN Sinks<MemAt, PacketsAt> sinks_of(const ProgramStep& step, MemAt plain, PacketsAt packets) {
  return {plain, packets, step.plain_sinks, step.packet_sinks};
}

/// Says how long a step is. Packets have `bytes` bytes. Its plain places have only the first `exist` of them:
/// the rest of the last chunk of a message is padding.
struct Extent {
  uint64_t bytes;
  uint64_t exist;
};

CHORALE_FN uint64_t valid_at(const Mem* place) { return place->valid; }

/// Returns the extent of a step that is marked as whole. `plain` is the first of its plain places. Only steps
/// with lines have padding.
template <class P, class MemAt>
CHORALE_FN Extent extent_of(const ProgramStep& step, MemAt plain) {
  if constexpr (detail::by_line<Packets<P>>) {
    const bool has_plain = step.kind == ProgramStepKind::copy || step.kind == ProgramStepKind::reduce ||
                           step.own != 0 || step.plain_sinks != 0;
    if (has_plain) {
      const uint64_t valid = valid_at(plain);
      if (valid < step.bytes) return {step.bytes, valid};
    }
  }
  return {step.bytes, step.bytes};
}

/// Calls part(turn) for the calling thread's units, or its warp's lines, N at a time. Ends at the first stop.
/// If Whole is false, N is 1, and the last unit may have fewer than 16 bytes.
template <uint32_t N, bool Lines, bool Whole = true, class Part>
CHORALE_FN Stop each_turn(const Group& group, const Extent& extent, const Part& part) {
  const uint64_t bytes = extent.bytes;
  if constexpr (!Whole) {
    static_assert(N == 1 && !Lines);
    for (uint64_t unit = group.rank; unit < units_of(bytes); unit += group.size) {
      const Stop stop = part(Turn{unit, group.size, 1, detail::bytes_within(unit, unit_bytes, bytes)});
      if (stop != Stop::none) return stop;
    }
    return Stop::none;
  }
  if constexpr (Lines) {
    uint64_t first = detail::first_line(group);
    const uint64_t lines = packet_bytes<LL128>(bytes) / sizeof(LL128);
    return detail::each_turn_of_lines<true, N, true>(group, first, 0, lines, extent.exist, part);
  }
  const uint64_t units = bytes / unit_bytes;
  for (uint64_t unit = group.rank; unit < units; unit += N * uint64_t(group.size)) {
    Turn turn{unit, group.size, 1, unit_bytes};
#pragma unroll
    for (uint32_t index = 1; index < N; ++index) turn.n += unit + index * turn.stride < units ? 1 : 0;
    const Stop stop = part(turn);
    if (stop != Stop::none) return stop;
  }
  return Stop::none;
}

template <bool Lines, uint32_t N, class Source, class To>
CHORALE_FN Stop copy_whole(const Group& group, const Extent& extent, const Source& source, const To& sinks) {
  return each_turn<N, Lines>(group, extent, [&](const Turn& turn) {
    Unit held[N];
    const Stop stop = source.template read<true, N>(group, turn, held);
    if (stop == Stop::none) sinks.template write<N>(turn, held);
    return stop;
  });
}

template <bool Lines, class Source, class To>
CHORALE_FN Stop copy_whole(const Group& group, const Extent& extent, const Source& source, const To& sinks) {
  return copy_whole < Lines, Lines ? 4 : Source::at_once > (group, extent, source, sinks);
}

/// Copies unit by unit, whatever their alignment. The last unit may have fewer than 16 bytes.
template <class Source, class To>
CHORALE_FN Stop copy_parts(const Group& group, uint64_t bytes, const Source& source, const To& sinks) {
  return each_turn<1, false, false>(group, {bytes, bytes}, [&](const Turn& turn) {
    Unit held[1];
    const Stop stop = source.template read<false, 1>(group, turn, held);
    if (stop == Stop::none) sinks.template write<1, false>(turn, held);
    return stop;
  });
}

/// Computes first + others[0] + .. + others[n-1], N units of a thread at a time.
template <ReduceOp Op, class T, uint32_t N, bool Lines, class Others, class To>
CHORALE_FN Stop reduce_whole(const Group& group, const Extent& extent, const Mem& first, Others others,
                             uint32_t n, const To& sinks) {
  return each_turn<N, Lines>(group, extent, [&](const Turn& turn) {
    Unit held[N];
    const Stop stop = detail::combine_all<Op, T, true, N>(
        group, turn, first, n, [others](uint32_t other) -> decltype(auto) { return others[other]; }, 0, held);
    if (stop == Stop::none) sinks.template write<N>(turn, held);
    return stop;
  });
}

/// Sums n packets and, at its place in the order, the plain source if there is one. It checks K packets
/// before it waits for one, N units of a thread at a time.
template <ReduceOp Op, class T, class P, uint32_t K, uint32_t N, bool Whole = true, class MemAt,
          class PacketsAt, class To>
CHORALE_FN Stop add_packets(const Group& group, const ProgramStep& step, MemAt plain, PacketsAt packets,
                            const To& sinks) {
  using Loaded = typename Packets<P>::Loaded;
  // Without a plain source, `own` is a place after all packets, and nothing is added there.
  const uint32_t n = step.n, own = step.own - 1u;
  const Extent extent = extent_of<P>(step, plain);
  return each_turn<N, detail::by_line<Packets<P>>, Whole>(group, extent, [&](const Turn& turn) {
    Unit next[N];
    if (step.own != 0) {
      plain[0].template read<Whole, N>(group, turn, next);
    } else {
#pragma unroll
      for (uint32_t index = 0; index < N; ++index) next[index] = Unit{};
    }
    detail::Sum<Op, T> sums[N]{};  // initialised on every path; otherwise it would take registers throughout
                                   // the loop over steps
    for (uint32_t before = 0; before < n; before += K) {
      Loaded held[K][N];
      const uint32_t here = n - before < K ? n - before : K;
      const Stop stop = Packets<P>::template gather<true, K, N>(
          group, turn, here,
          [packets, before](uint32_t source) -> decltype(auto) { return packets[before + source]; }, held);
      if (stop != Stop::none) return stop;
#pragma unroll
      for (uint32_t source = 0; source < K; ++source) {
        if (source >= here) continue;
        const uint32_t at = before + source;
#pragma unroll
        for (uint32_t index = 0; index < N; ++index) {
          // From the plain source's place on, each packet waits one turn: the value before it is added.
          const Unit came = unit_of(held[source][index]);
          const Unit adds = at >= own ? next[index] : came;
          if (at >= own) next[index] = came;
          if (at == 0) {
            sums[index].start(adds);
          } else {
            sums[index].add(adds);
          }
        }
      }
    }
    Unit units[N];
#pragma unroll
    for (uint32_t index = 0; index < N; ++index) {
      if (step.own != 0) sums[index].add(next[index]);
      units[index] = sums[index].finish(0);
    }
    sinks.template write<N, Whole>(turn, units);
    return Stop::none;
  });
}

/// Runs a step that reduces packets. With Fitted it has several paths, for the number of packets with 2, 4
/// and 8 ranks, so that no branch is between the loads. With few packets, in long messages, it takes more
/// units at a time. This needs registers in the kernel. Whole says that all units are whole and aligned.
template <ReduceOp Op, class T, class P, bool Fitted, bool Whole = true, class MemAt, class PacketsAt>
CHORALE_FN Stop reduce_packets_step(const Group& group, const ProgramStep& step, MemAt plain,
                                    PacketsAt packets) {
  const auto sinks = sinks_of(step, plain + (step.own != 0 ? 1 : 0), packets + step.n);
  if constexpr (Fitted) {
    if constexpr (sizeof(T) > 1 && Whole) {
      // A thread moves two units faster one after the other than as half of four.
      const uint64_t round = uint64_t(group.size) * unit_bytes;
      if (step.n == 1 && step.bytes > 2 * round) {
        return add_packets<Op, T, P, 1, 4>(group, step, plain, packets, sinks);
      }
      if (step.n > 1 && step.n <= 3 && step.bytes > round) {
        return add_packets<Op, T, P, 3, 2>(group, step, plain, packets, sinks);
      }
    }
    if (step.n == 1) return add_packets<Op, T, P, 1, 1, Whole>(group, step, plain, packets, sinks);
    if (step.n <= 3) return add_packets<Op, T, P, 3, 1, Whole>(group, step, plain, packets, sinks);
  }
  constexpr uint32_t at_once = sizeof(T) == 1 ? 4 : 7;
  return add_packets<Op, T, P, at_once, 1, Whole>(group, step, plain, packets, sinks);
}

/// Returns true if a step is moved line by line, because it has LL128 packets at some place.
template <class P>
CHORALE_FN bool has_lines(const ProgramStep& step) {
  return detail::by_line<Packets<P>> && (step.packet_sinks != 0 || (step.kind != ProgramStepKind::copy &&
                                                                    step.kind != ProgramStepKind::reduce));
}

/// Moves unit by unit, or line by line, only the bytes that exist.
template <class P, class To, class Read>
CHORALE_FN Stop move_slowly(const Group& group, const ProgramStep& step, const To& sinks, const Read& read) {
  const auto part = [&](const Turn& turn) {
    Unit held[1];
    const Stop stop = read(turn, held);
    if (stop != Stop::none) return stop;
    for (uint32_t sink = 0; sink < sinks.n_plain; ++sink)
      sinks.plain[sink].template write<false, 1>(turn, held);
    for (uint32_t sink = 0; sink < sinks.n_packets; ++sink)
      sinks.packets[sink].template write<false, 1>(turn, held);
    return Stop::none;
  };
  if constexpr (detail::by_line<Packets<P>>) {
    if (has_lines<P>(step)) {
      uint64_t first = detail::first_line(group);
      const uint64_t lines = packet_bytes<LL128>(step.bytes) / sizeof(LL128);
      return detail::each_turn_of_lines<false, 1>(group, first, 0, lines, step.bytes, part);
    }
  }
  Stop stop = Stop::none;
  for (uint64_t unit = group.rank; unit < units_of(step.bytes) && stop == Stop::none; unit += group.size) {
    stop = part(Turn{unit, group.size, 1, detail::bytes_within(unit, unit_bytes, step.bytes)});
  }
  return stop;
}

template <ReduceOp Op, class T, class P>
__device__ __noinline__ Stop reduce_slowly(const ProgramStep& step, const Page<P>& page) {
  const Group group = block_group();
  const Mem* const plain = page.plain + step.first_plain;
  const Packets<P>* const packets = page.packets + step.first_packets;
  const bool all_plain = step.kind == ProgramStepKind::reduce;
  const uint32_t n = step.n + (all_plain || step.own != 0 ? 1 : 0);
  const auto sinks = sinks_of(step,
                              plain + (all_plain       ? n
                                       : step.own != 0 ? 1
                                                       : 0),
                              packets + (all_plain ? 0 : step.n));
  return move_slowly<P>(group, step, sinks, [&](const Turn& turn, Unit(&held)[1]) {
    detail::Sum<Op, T> sum;
    Stop stop = Stop::none;
    uint32_t packet = 0;
    for (uint32_t at = 0; at < n && stop == Stop::none; ++at) {
      if (all_plain || at + 1 == step.own) {
        stop = plain[all_plain ? at : 0].template read<false, 1>(group, turn, held);
      } else {
        stop = packets[packet++].template read<false, 1>(group, turn, held);
      }
      if (at == 0) {
        sum.start(held[0]);
      } else {
        sum.add(held[0]);
      }
    }
    held[0] = sum.finish(0);
    return stop;
  });
}

// The switches over operators below have a case for each operator. A plan with another operator is not bound,
// and a new row of types.def stops the build here. The cases are not generated from types.def, because
// unreachable cases cost registers.
static_assert(std::size(all_reduce_ops) == 5,
              "give the operator its case in run_slowly() and reduce_otherwise()");

/// Runs steps that are not whole: tails, and buffers at odd addresses. It is a separate function, so that the
/// fast paths stay small, because a GPU fetches code slowly the first time.
template <class T, class P>
__device__ __noinline__ Stop run_slowly(const ProgramStep& step, const Page<P>& page) {
  const Group group = block_group();
  const Mem* const plain = page.plain + step.first_plain;
  const Packets<P>* const packets = page.packets + step.first_packets;
  if (step.kind == ProgramStepKind::copy) {
    return move_slowly<P>(group, step, sinks_of(step, plain + 1, packets),
                          [&](const Turn& turn, Unit(&held)[1]) {
                            return plain[0].template read<false, 1>(group, turn, held);
                          });
  }
  if (step.kind == ProgramStepKind::unpack) {
    return group.agree(move_slowly<P>(group, step, sinks_of(step, plain, packets + 1),
                                      [&](const Turn& turn, Unit(&held)[1]) {
                                        return packets[0].template read<false, 1>(group, turn, held);
                                      }));
  }
  Stop stop = Stop::none;
  if constexpr (!std::is_void<T>::value) {
    switch (ReduceOp(step.reduce_op)) {
      case ReduceOp::sum:
      case ReduceOp::avg:
        stop = reduce_slowly<ReduceOp::sum, T>(step, page);
        break;
      case ReduceOp::min:
        stop = reduce_slowly<ReduceOp::min, T>(step, page);
        break;
      case ReduceOp::max:
        stop = reduce_slowly<ReduceOp::max, T>(step, page);
        break;
      case ReduceOp::prod:
        stop = reduce_slowly<ReduceOp::prod, T>(step, page);
        break;
    }
  }
  return step.kind == ProgramStepKind::reduce ? stop : group.agree(stop);
}

template <ReduceOp Op, class T, class P>
CHORALE_FN Stop reduce_step(const Group& group, const ProgramStep& step, const Page<P>& page) {
  const Mem* const plain = page.plain + step.first_plain;
  const Packets<P>* const packets = page.packets + step.first_packets;
  const uint32_t n = step.n;
  constexpr uint32_t several = sizeof(T) == 1 ? 1 : 2;
  switch (step.kind) {
    case ProgramStepKind::reduce: {
      const auto sinks = sinks_of(step, plain + 1 + n, packets);
      const Extent extent = extent_of<P>(step, plain);
      if constexpr (detail::by_line<Packets<P>>) {
        if (has_lines<P>(step))
          return reduce_whole<Op, T, 1, true>(group, extent, plain[0], plain + 1, n, sinks);
      }
      if (several > 1 && n <= detail::together<T, several>) {
        return reduce_whole<Op, T, several, false>(group, extent, plain[0], plain + 1, n, sinks);
      }
      return reduce_whole<Op, T, 1, false>(group, extent, plain[0], plain + 1, n, sinks);
    }
    default:
      return reduce_packets_step<Op, T, P, false>(group, step, plain, packets);
  }
}

/// Runs the rarer operators. It is a separate function for the same reason as run_slowly().
template <class T, class P>
__device__ __noinline__ Stop reduce_otherwise(const ProgramStep& step, const Page<P>& page) {
  const Group group = block_group();
  switch (ReduceOp(step.reduce_op)) {
    case ReduceOp::min:
      return reduce_step<ReduceOp::min, T>(group, step, page);
    case ReduceOp::max:
      return reduce_step<ReduceOp::max, T>(group, step, page);
    default:  // prod
      return reduce_step<ReduceOp::prod, T>(group, step, page);
  }
}

/// Returns whether a step copies memory onto itself, as an all-gather in place does with its own part. The
/// proof assumes that nothing happens then.
template <class At>
CHORALE_FN bool copies_onto_itself(const ProgramStep& step, const At& page) {
  return step.kind == ProgramStepKind::copy && step.plain_sinks == 1 && step.packet_sinks == 0 &&
         page.plain[step.first_plain].data == page.plain[step.first_plain + 1].data;
}

/// Runs a step that moves data. A step that waited ends with the block synchronised; other steps do not.
template <class T, class P>
CHORALE_FN Stop run_data(const Group& group, const ProgramStep& step, const Page<P>& page,
                         uint32_t misaligned) {
  if (copies_onto_itself(step, page)) return Stop::none;
  if (!step.whole || (step.passed & misaligned) != 0) return run_slowly<T, P>(step, page);
  const Mem* const plain = page.plain + step.first_plain;
  const Packets<P>* const packets = page.packets + step.first_packets;
  const Extent extent = extent_of<P>(step, plain);
  if (step.kind == ProgramStepKind::copy) {
    const auto sinks = sinks_of(step, plain + 1, packets);
    if constexpr (detail::by_line<Packets<P>>) {
      if (has_lines<P>(step)) return copy_whole<true>(group, extent, plain[0], sinks);
    }
    return copy_whole<false>(group, extent, plain[0], sinks);
  }
  Stop stop = Stop::none;
  if (step.kind == ProgramStepKind::unpack) {
    stop = copy_whole<detail::by_line<Packets<P>>>(group, extent, packets[0],
                                                   sinks_of(step, plain, packets + 1));
  } else if constexpr (!std::is_void<T>::value) {
    const ReduceOp op = ReduceOp(step.reduce_op);
    stop = op == ReduceOp::sum || op == ReduceOp::avg ? reduce_step<ReduceOp::sum, T>(group, step, page)
                                                      : reduce_otherwise<T, P>(step, page);
    if (step.kind == ProgramStepKind::reduce) return stop;
  }
  return group.agree(stop);
}

}  // namespace chorale::cuda
