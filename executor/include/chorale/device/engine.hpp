#pragma once
// The one loop that moves data: from a source to a sink, unit by unit, shared by the plan interpreter and
// users' kernels.

#include <cstdint>
#include <type_traits>

#include "chorale/device/endpoints.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/packets.hpp"
#include "chorale/device/reduce.hpp"
#include "chorale/device/vec.hpp"

namespace chorale {

/// Moves `bytes` bytes, a whole number of elements, from `source` to `sink`; the group's threads take units
/// in turn, unit u by thread u % size, in every transfer. Source and sink may be the same memory, but not
/// overlap otherwise.
///
/// A source that waits can stop: then Stop says why, the same in every thread, and units that had come may
/// have been passed on, each of them complete. With such a source the group is synchronised at the end; with
/// others it is not, and Stop is none: what follows with other units than its thread's own, and every signal,
/// synchronises first.
template <class Source, class Sink>
CHORALE_FN Stop transfer(const Group& group, uint64_t bytes, const Source& source, const Sink& sink);

#if defined(__CUDACC__)

namespace detail {
/// Moves the calling thread's units from `unit` on that lie before `units`, N at a time: several loads in
/// flight before the first store hide the latency of peers' memory.
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
}  // namespace detail

template <class Source, class Sink>
CHORALE_FN Stop transfer(const Group& group, uint64_t bytes, const Source& source, const Sink& sink) {
  uint64_t unit = group.rank;
  Stop stop = Stop::none;
  if (source.whole(bytes) && sink.whole(bytes)) {
    const uint64_t units = bytes / unit_bytes;
    stop = Source::at_once == 1 || source.may_take_several()
               ? detail::move_whole<Source::at_once>(group, unit, units, source, sink)
               : detail::move_whole<1>(group, unit, units, source, sink);
  }
  // The tail, or everything.
  for (; stop == Stop::none && unit < units_of(bytes); unit += group.size) {
    const Turn turn{unit, group.size, 1, detail::bytes_within(unit, unit_bytes, bytes)};
    Unit held[1];
    stop = source.template read<false, 1>(group, turn, held);
    if (stop == Stop::none) sink.template write<false, 1>(turn, held);
  }
  if constexpr (Source::waits) stop = group.agree(stop);
  return stop;
}

#else

template <class Source, class Sink>
CHORALE_FN Stop transfer(const Group& group, uint64_t bytes, const Source& source, const Sink& sink) {
  // One thread moves long spans, through memcpy and vector code. Several take units in turn, just as on CUDA,
  // so that what a kernel may and may not assume about its threads is tested here too.
  constexpr uint64_t longest =
      std::is_same_v<Source, Mem> && std::is_same_v<Sink, Mem> ? unlimited : 64 * 1024;
  const uint64_t stride = group.size == 1 ? 0 : (group.size - 1) * uint64_t{unit_bytes};
  alignas(64) char room[detail::span_bytes];
  Stop stop = Stop::none;
  for (uint64_t at = group.rank * uint64_t{unit_bytes}; at < bytes;) {
    uint64_t span = bytes - at;
    if (group.size > 1) {
      span = span < unit_bytes ? span : unit_bytes;
    } else {
      uint64_t run = source.run(at);
      run = run < longest ? run : longest;
      if (run > detail::span_bytes && span > detail::span_bytes) {
        span = (run < span ? run : span) / unit_bytes * unit_bytes;
      } else if (span > detail::span_bytes) {
        span = detail::span_bytes;
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
