#pragma once
// transfer() is the only loop that moves data, unit by unit from a source to a sink. The plan interpreter and
// users' kernels share it.

#include <cstdint>
#include <type_traits>

#include "chorale/device/endpoints.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/lines.hpp"
#include "chorale/device/packets.hpp"
#include "chorale/device/reduce.hpp"
#include "chorale/device/vec.hpp"

namespace chorale {

/// Moves `bytes` bytes, a whole number of elements, from `source` to `sink`. Called by all threads of the
/// group. Without LL128 packets at either end, thread u % size moves unit u. With LL128 packets the group
/// must be whole warps, and its warps take lines in turn, so other threads move the units. Source and sink
/// may be the same memory but must not overlap in another way.
///
/// If the source waits (Source::waits), the group is synchronised afterwards. The result then says why the
/// source stopped, and is the same in every thread. Units that arrived before the stop may have been moved,
/// each of them completely. If the source does not wait, the result is Stop::none and the group is not
/// synchronised: synchronise it before you signal or use units that other threads have moved.
template <class Source, class Sink>
CHORALE_FN Stop transfer(const Group& group, uint64_t bytes, const Source& source, const Sink& sink);

namespace detail {
/// Returns the turn of one lane, when its warp moves at most N of the lines first, first + stride, ... that
/// are in begin .. end-1. The turn has no units past the end of the data.
/// \param bytes  the size of the data
/// \tparam Whole  promises that each unit before the end of the data is whole
/// \tparam Padded  false promises that these lines have no unit past the end of the data
template <bool Whole, uint32_t N, bool Padded>
CHORALE_FN Turn turn_of_lines(uint32_t lane, uint64_t stride, uint64_t first, uint64_t begin, uint64_t end,
                              uint64_t bytes) {
  constexpr uint32_t lanes = LL128::units + 1;
  const uint32_t slot = lane % lanes;
  Turn turn{};
  turn.line = first + lane / lanes;
  turn.line_stride = stride;
  turn.unit = turn.line * LL128::units + slot;
  turn.stride = stride * LL128::units;
  turn.bytes = Whole ? unit_bytes : bytes_within(turn.unit, unit_bytes, bytes);
  for (uint32_t index = 0; index < N; ++index) {
    const uint64_t line = turn.line + index * stride;
    if (line < begin || line >= end) continue;
    ++turn.lines;
    // The last chunk of a message may end many lines before its packets do. The test takes registers, which
    // not every caller has.
    const bool exists = !Padded || (turn.unit + index * turn.stride) * unit_bytes < bytes;
    if (slot < LL128::units && exists) ++turn.n;
  }
  return turn;
}
}  // namespace detail

#if defined(__CUDACC__)

namespace detail {
/// Moves the calling thread's units in `unit` .. `units`-1, N at a time. Several loads are in flight before
/// the first store, to hide the latency of peers' memory.
template <uint32_t N, class Source, class Sink>
CHORALE_FN Stop move_whole(const Group& group, uint64_t& unit, uint64_t units, const Source& source,
                           const Sink& sink) {
  while (unit < units) {
    Turn turn{unit, group.size, 1, unit_bytes};
#pragma unroll
    for (uint32_t index = 1; index < N; ++index) turn.n += unit + index * turn.stride < units ? 1 : 0;
    Unit held[N];
    const Stop stop = source.template read<true, N>(group, turn, held);
    if (stop != Stop::none) return stop;
    sink.template write<true, N>(turn, held);
    unit += turn.n * turn.stride;
  }
  return Stop::none;
}
/// Does transfer() unit by unit.
template <class Source, class Sink>
CHORALE_FN Stop by_units(const Group& group, uint64_t bytes, const Source& source, const Sink& sink) {
  uint64_t unit = group.rank;
  Stop stop = Stop::none;
  if (source.whole(bytes) && sink.whole(bytes)) {
    const uint64_t units = bytes / unit_bytes;
    stop = Source::at_once == 1 || source.may_take_several()
               ? move_whole<Source::at_once>(group, unit, units, source, sink)
               : move_whole<1>(group, unit, units, source, sink);
  }
  // Moves the tail, or everything if the data is not whole and aligned.
  for (; stop == Stop::none && unit < units_of(bytes); unit += group.size) {
    const Turn turn{unit, group.size, 1, bytes_within(unit, unit_bytes, bytes)};
    Unit held[1];
    stop = source.template read<false, 1>(group, turn, held);
    if (stop == Stop::none) sink.template write<false, 1>(turn, held);
  }
  return stop;
}

/// Calls part(turn) for a warp's lines in begin .. end-1, N at a time, from line `first` on. Afterwards
/// `first` is past them. Called by a warp, for data of `bytes` bytes. Ends at the first stop, which `part`
/// must return alike in all lanes. See turn_of_lines() for the turns.
template <bool Whole, uint32_t N, bool Padded = !Whole, class Part>
CHORALE_FN Stop each_turn_of_lines(const Group& group, uint64_t& first, uint64_t begin, uint64_t end,
                                   uint64_t bytes, const Part& part) {
  const uint64_t stride = group.size / (LL128::units + 1);
  while (first < end) {
    const Turn turn =
        turn_of_lines<Whole, N, Padded>(group.rank % warp_threads, stride, first, begin, end, bytes);
    const Stop stop = part(turn);
    if (stop != Stop::none) return stop;
#pragma unroll
    for (uint32_t index = 0; index < N; ++index) first += first < end ? stride : 0;
  }
  return Stop::none;
}

/// Returns the first line of the calling thread's warp.
CHORALE_FN uint64_t first_line(const Group& group) {
  return group.rank / warp_threads * (warp_threads / (LL128::units + 1));
}

template <bool Whole, uint32_t N, class Source, class Sink>
CHORALE_FN Stop move_lines(const Group& group, uint64_t& first, uint64_t begin, uint64_t end, uint64_t bytes,
                           const Source& source, const Sink& sink) {
  return each_turn_of_lines<Whole, N>(group, first, begin, end, bytes, [&](const Turn& turn) {
    Unit held[N];
    Stop stop = source.template read<Whole, N>(group, turn, held);
    if constexpr (Source::waits) stop = agree_in_warp(stop);
    if (stop == Stop::none) sink.template write<Whole, N>(turn, held);
    return stop;
  });
}

/// Does transfer() line by line. A warp moves four lines at a time: lanes 8k to 8k+6 have the units of one
/// line, and lane 8k+7 has its flag.
template <class Source, class Sink>
CHORALE_FN Stop by_lines(const Group& group, uint64_t bytes, const Source& source, const Sink& sink) {
  const uint64_t lines = packet_bytes<LL128>(bytes) / sizeof(LL128), stride = group.size / (LL128::units + 1);
  const uint64_t start = first_line(group);
  uint64_t first = start, whole = 0;
  Stop stop = Stop::none;
  if (source.whole(bytes) && sink.whole(bytes)) {
    whole = bytes / packet_payload<LL128>;
    stop = Source::at_once == 1 || source.may_take_several()
               ? move_lines<true, Source::at_once>(group, first, 0, whole, bytes, source, sink)
               : move_lines<true, 1>(group, first, 0, whole, bytes, source, sink);
    // The warp's last step may also hold the line that is not whole, so go back to it.
    if (first != start) first -= stride;
  }
  if (stop == Stop::none && whole != lines) {
    stop = move_lines<false, 1>(group, first, whole, lines, bytes, source, sink);
  }
  return stop;
}
}  // namespace detail

template <class Source, class Sink>
CHORALE_FN Stop transfer(const Group& group, uint64_t bytes, const Source& source, const Sink& sink) {
  Stop stop;
  if constexpr (detail::by_line<Source> || detail::by_line<Sink>) {
    stop = detail::by_lines(group, bytes, source, sink);
  } else {
    stop = detail::by_units(group, bytes, source, sink);
  }
  if constexpr (Source::waits) stop = group.agree(stop);
  return stop;
}

#else

template <class Source, class Sink>
CHORALE_FN Stop transfer(const Group& group, uint64_t bytes, const Source& source, const Sink& sink) {
  // A thread alone moves long spans, through memcpy and vector code. Several threads take units in turn as on
  // CUDA. So the CPU also tests what a kernel may assume about its threads.
  constexpr uint64_t longest =
      std::is_same_v<Source, Mem> && std::is_same_v<Sink, Mem> ? unlimited : 64 * 1024;
  constexpr uint64_t grain =
      detail::by_line<Source> || detail::by_line<Sink> ? packet_payload<LL128> : unit_bytes;
  constexpr uint64_t staged = detail::span_bytes / grain * grain;
  const uint64_t stride = group.size == 1 ? 0 : (group.size - 1) * grain;
  alignas(64) char room[detail::span_bytes];
  Stop stop = Stop::none;
  for (uint64_t at = group.rank * grain; at < bytes;) {
    uint64_t span = bytes - at;
    if (group.size > 1) {
      span = span < grain ? span : grain;
    } else {
      uint64_t run = source.run(at);
      run = run < longest ? run : longest;
      if (run > staged && span > staged) {
        span = (run < span ? run : span) / grain * grain;
      } else if (span > staged) {
        span = staged;
      }
    }
    const char* seen;
    stop = source.view(group, at, span, room, seen);
    if (stop != Stop::none) break;
    group.step();
    sink.put(at, span, seen);
    at += span + stride;
  }
  if constexpr (Source::waits) stop = group.agree(stop);
  return stop;
}

#endif

}  // namespace chorale
