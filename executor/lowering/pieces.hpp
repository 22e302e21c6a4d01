#pragma once
/// \file
/// This file cuts the operands of data-moving operations into pieces. In nominal space an operand may cross
/// the end of a segment, and the operands of one operation may do so at different places. After the cut each
/// piece of each operand is contiguous in memory. No other file does this.
///
/// M is a machine, see semantics.hpp.

#include <cstdint>

#include "ops.hpp"

namespace chorale {

using image::Place;
using image::Range;

namespace pieces {

/// Returns the buffer whose shape an operand has.
template <Role R, class M>
const image::Buffer& shape(const M& m, const Place& place) {
  const image::Image& image = m.image();
  if constexpr (is_switched(R)) return image.buffers[image.members[image.switches[place.buffer].first]];
  return image.buffers[place.buffer];
}

/// Returns `most` or, if smaller, the number of bytes from `at` on that are in one segment of every operand.
template <class M, Role R>
uint64_t within(const M& m, const op::Places<R>& places, uint64_t at, uint64_t most) {
  for (uint32_t place = 0; place < places.n; ++place) {
    if (places[place].whole) continue;
    const uint64_t run =
        image::locate(shape<R>(m, places[place]), places[place].start + at, m.image().skip).run;
    most = run < most ? run : most;
  }
  return most;
}

/// Calls step(at, bytes) for the pieces of a range. An empty range has none.
template <class M, class F, Role... R>
void each(M& m, const Range& range, F&& step, const op::Places<R>&... operands) {
  uint64_t bytes;
  for (uint64_t at = range.first; at < range.end; at += bytes) {
    bytes = range.end - at;
    ((bytes = within(m, operands, at, bytes)), ...);
    step(at, bytes);
  }
}

/// Returns the position of byte `at` of an operand.
template <Role R, class M>
image::Position position(const M& m, const Place& place, uint64_t at) {
  if (place.whole) {
    return {place.offset + at, place.valid > at ? place.valid - at : 0, place.bytes - at};
  }
  return image::locate(shape<R>(m, place), place.start + at, m.image().skip);
}

/// Returns a position in the packet scratch Image::buffers[buffer]. It is between two packets, because
/// operands begin and are cut at multiples of the layout's alignment.
template <class P, class M>
Packets<P> packets_at(M& m, uint32_t buffer, uint64_t nominal) {
  char* const base = m.base(buffer);
  return Packets<P>(
      static_cast<void*>(base + packet_offset<P>(nominal) + m.bank(m.image().buffers[buffer].bank_bytes)), 0);
}

template <class M, Role R>
Mem memory(M& m, const op::Places<R>& places, uint32_t place, uint64_t at) {
  const Place& of = places[place];
  const image::Position found = position<R>(m, of, at);
  char* const base = m.base(of.buffer);
  return Mem(base ? base + found.offset + m.bank(m.image().buffers[of.buffer].bank_bytes) : nullptr,
             found.valid);
}

template <class P, class M, Role R>
Packets<P> packets(M& m, const op::Places<R>& places, uint32_t place, uint64_t at) {
  return packets_at<P>(m, places[place].buffer, places[place].start + at);
}

/// Views a list of sources or sinks in the machine's memory.
template <class T>
struct List {
  T* items;
  uint32_t n;

  Many<T> all() const { return {items, n}; }
};

/// Lists the places of up to two fields.
template <class M, Role A, Role B = A>
List<Mem> memories(M& m, uint64_t at, const op::Places<A>& first, const op::Places<B>& more = {}) {
  return {m.template list<Mem>(first.n + more.n,
                               [&](uint32_t item) {
                                 return item < first.n ? memory(m, first, item, at)
                                                       : memory(m, more, item - first.n, at);
                               }),
          first.n + more.n};
}

template <class P, class M, Role A, Role B = A>
List<Packets<P>> all_packets(M& m, uint64_t at, const op::Places<A>& first, const op::Places<B>& more = {}) {
  return {m.template list<Packets<P>>(first.n + more.n,
                                      [&](uint32_t item) {
                                        return item < first.n ? packets<P>(m, first, item, at)
                                                              : packets<P>(m, more, item - first.n, at);
                                      }),
          first.n + more.n};
}

/// Names a position in the memory of all members of a switch channel.
struct Members {
  char* const* data;
  uint32_t n;
  uint64_t offset, valid;
};

template <class M, Role R>
Members members(M& m, const op::Places<R>& places, uint64_t at) {
  static_assert(is_switched(R), "members belong to a switch channel");
  const image::Image& image = m.image();
  const image::Switch& of = image.switches[places[0].buffer];
  const image::Position found = position<R>(m, places[0], at);
  char* const* data = m.template list<char*>(of.n, [&](uint32_t member) {
    const uint32_t buffer = image.members[of.first + member];
    return m.base(buffer) + m.bank(image.buffers[buffer].bank_bytes);
  });
  return {data, of.n, found.offset, found.valid};
}

}  // namespace pieces

// -- Building blocks of operations

/// Copies plain memory to plain memory, position by position.
template <class M, Role S, Role D>
void copy_plain(M& m, const op::Slice& slice, const op::Places<S>& src, const op::Places<D>& dst) {
  for (uint32_t pair = 0; pair < src.n && pair < dst.n; ++pair) {
    const op::Places<S> from{&src[pair], 1};
    const op::Places<D> to{&dst[pair], 1};
    pieces::each(
        m, m.range(src[pair].bytes, slice),
        [&](uint64_t at, uint64_t bytes) {
          m.move(bytes, pieces::memory(m, from, 0, at), pieces::memory(m, to, 0, at));
        },
        from, to);
  }
}

/// Copies plain memory to packets, position by position.
template <class M, Role S, Role D>
void copy_to_packets(M& m, const op::Slice& slice, const op::Places<S>& src, const op::Places<D>& dst) {
  m.with_packet([&](auto form) {
    using P = typename decltype(form)::type;
    for (uint32_t pair = 0; pair < src.n && pair < dst.n; ++pair) {
      const op::Places<S> from{&src[pair], 1};
      pieces::each(
          m, m.range(src[pair].bytes, slice),
          [&](uint64_t at, uint64_t bytes) {
            m.move(bytes, pieces::memory(m, from, 0, at), pieces::packets<P>(m, dst, pair, at));
          },
          from);
    }
  });
}

/// Copies packets to plain memory.
template <class M, Role S, Role D>
void copy_from_packets(M& m, const op::Slice& slice, const op::Places<S>& src, const op::Places<D>& dst) {
  m.with_packet([&](auto form) {
    using P = typename decltype(form)::type;
    pieces::each(
        m, m.range(src[0].bytes, slice),
        [&](uint64_t at, uint64_t bytes) {
          m.move(bytes, pieces::packets<P>(m, src, 0, at), pieces::memory(m, dst, 0, at));
        },
        dst);
  });
}

/// Copies packets to the packets of every destination, or of every member of a switch channel.
template <class M, Role S, Role D>
void forward_packets(M& m, const op::Slice& slice, const op::Places<S>& src, const op::Places<D>& dst) {
  m.with_packet([&](auto form) {
    using P = typename decltype(form)::type;
    const Range range = m.range(src[0].bytes, slice);
    if (range.first == range.end) return;
    pieces::List<Packets<P>> to{nullptr, dst.n};
    if constexpr (is_switched(D)) {
      const image::Image& image = m.image();
      const image::Switch& of = image.switches[dst[0].buffer];
      to.n = of.n;
      to.items = m.template list<Packets<P>>(of.n, [&](uint32_t member) {
        return pieces::packets_at<P>(m, image.members[of.first + member], dst[0].start + range.first);
      });
    } else {
      to = pieces::all_packets<P>(m, range.first, dst);
    }
    m.move(range.end - range.first, pieces::packets<P>(m, src, 0, range.first), to.all());
    m.release_lists();
  });
}

/// Combines src with others and writes the result to every plain destination.
template <class M, Role O, Role R = Role::RemoteWrite>
void reduce_plain(M& m, ReduceOp op, const op::Slice& slice, const op::Places<Role::Read>& src,
                  const op::Places<O>& others, const op::Places<Role::Write>& dst,
                  const op::Places<R>& remote = {}) {
  pieces::each(
      m, m.range(src[0].bytes, slice),
      [&](uint64_t at, uint64_t bytes) {
        const pieces::List<Mem> from = pieces::memories(m, at, others);
        const pieces::List<Mem> to = pieces::memories(m, at, dst, remote);
        m.reduce(op, bytes, pieces::memory(m, src, 0, at), from.items, from.n, to.all());
        m.release_lists();
      },
      src, others, dst, remote);
}

/// Combines src with packets and writes the result to dst and to packets here and at peers.
template <class M>
void reduce_packets_to(M& m, ReduceOp op, const op::Slice& slice, const op::Places<Role::Read>& src,
                       const op::Places<Role::PacketRead>& others, const op::Places<Role::Write>& dst,
                       const op::Places<Role::PacketWrite>& kept = {},
                       const op::Places<Role::RemotePacketWrite>& remote = {}) {
  m.with_packet([&](auto form) {
    using P = typename decltype(form)::type;
    pieces::each(
        m, m.range(src[0].bytes, slice),
        [&](uint64_t at, uint64_t bytes) {
          const pieces::List<Packets<P>> from = pieces::all_packets<P>(m, at, others);
          const pieces::List<Packets<P>> to = pieces::all_packets<P>(m, at, kept, remote);
          m.reduce(op, bytes, pieces::memory(m, src, 0, at), from.items, from.n,
                   Tee<Mem, Many<Packets<P>>>{pieces::memory(m, dst, 0, at), to.all()});
          m.release_lists();
        },
        src, dst);
  });
}

/// Combines packets and writes the result to dst.
template <class M>
void combine_packets_to(M& m, ReduceOp op, const op::Slice& slice, const op::Places<Role::PacketRead>& src,
                        const op::Places<Role::Write>& dst) {
  m.with_packet([&](auto form) {
    using P = typename decltype(form)::type;
    pieces::each(
        m, m.range(src[0].bytes, slice),
        [&](uint64_t at, uint64_t bytes) {
          const pieces::List<Packets<P>> from = pieces::all_packets<P>(m, at, src);
          m.reduce(op, bytes, from.items[0], from.items + 1, from.n - 1, pieces::memory(m, dst, 0, at));
          m.release_lists();
        },
        dst);
  });
}

}  // namespace chorale
