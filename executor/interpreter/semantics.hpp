#pragma once
/// \file
/// This file defines every operation once, for every machine that runs plans.
///
/// M is a machine: one thread block (all its threads call everything here, with the same arguments). It has
///   image()                        the image that it runs from
///   base(buffer), bank(bytes), packet_bank(bytes)   where a buffer and this run's bank of scratch are
///   flag(), deadline()             this run's packet flag, and the limit of every wait
///   range(bytes, slice)            the part of an operand that this turn and this block of a group handle
///   list<T>(n, item)               n items, made by item(k), in room that stays until release_lists()
///   reach(places...)               waits until the peers' own memory in remote operands may be touched
///   with_packet(f)                 f(TypeTag<P>) for the form P of packets
///   move(bytes, source, sink)      transfer() by the block
///   reduce(op, bytes, first, others, n, sink)   transfer() from Reduced
///   reduce_members(op, bytes, members, sink)    transfer() from Multi
///   sync()                         orders the block's threads
///   post, await, drain, acquire, release, arrive   see below
///   push(action, ids, src, dst)    hands a transfer of each pair, a signal, or both to the proxy
///   turn(first, bytes)             sets the part that range() shares out; (0, 0): everything
/// A Stop other than none ends the block at once: it publishes nothing after that.

#include <cstdint>

#include "pieces.hpp"

namespace chorale {

/// The requests to a port channel's proxy, in the order in which it carries them out.
enum class Action : uint32_t { copy = 1, pack = 2, copy_packets = 4, signal = 8 };
CHORALE_HD constexpr Action operator|(Action a, Action b) { return Action(uint32_t(a) | uint32_t(b)); }
CHORALE_HD constexpr bool has(Action all, Action one) { return (uint32_t(all) & uint32_t(one)) != 0; }

template <class M>
CHORALE_FN Stop run(M& m, const op::nop&) {
  m.sync();
  return Stop::none;
}

template <class M>
CHORALE_FN Stop run(M&, const op::require&) {
  return Stop::none;
}

// -- Synchronisation

template <class M>
CHORALE_FN Stop run(M& m, const op::barrier& o) {
  return m.arrive(o.arrive.id, o.arrive.participants);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::signal& o) {
  // The signal must wait until the proxy has done its earlier work for this channel.
  if (has_proxy(o.via)) return m.push(Action::signal, o.post);
  m.post(o.post, false);
  return Stop::none;
}

template <class M>
CHORALE_FN Stop run(M& m, const op::relaxed_signal& o) {
  if (has_proxy(o.via)) return m.push(Action::signal, o.post);
  m.post(o.post, true);
  return Stop::none;
}

template <class M>
CHORALE_FN Stop run(M& m, const op::wait& o) {
  return m.await(o.await, false);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::relaxed_wait& o) {
  return m.await(o.await, true);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::flush& o) {
  return m.drain(o.drain);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::sem_acquire& o) {
  return m.acquire(o.acquire);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::sem_release& o) {
  m.release(o.release);
  return Stop::none;
}

// -- Copies

template <class M>
CHORALE_FN Stop run(M& m, const op::copy& o) {
  return copy_plain(m, o.slice, o.src, o.dst);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::copy_packets& o) {
  return copy_to_packets(m, o.slice, o.src, o.dst);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::unpack_packets& o) {
  return copy_from_packets(m, o.slice, o.src, o.dst);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::get& o) {
  return copy_plain(m, o.slice, o.src, o.dst);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::put& o) {
  if (has_proxy(o.via)) return m.push(Action::copy, o.port_channels, o.slice, o.src, o.dst);
  return copy_plain(m, o.slice, o.src, o.dst);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::put_with_signal& o) {
  if (has_proxy(o.via)) return m.push(Action::copy | Action::signal, o.post, op::Slice{}, o.src, o.dst);
  const Stop stop = copy_plain(m, op::Slice{}, o.src, o.dst);
  if (stop == Stop::none) m.post(o.post, false);
  return stop;
}

template <class M>
CHORALE_FN Stop run(M& m, const op::put_with_signal_and_flush& o) {
  const Stop stop = run(m, op::put_with_signal{o.cursor, o.src, o.dst, o.post, o.via});
  if (stop != Stop::none || !has_proxy(o.via)) return stop;
  return m.drain(o.drain);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::put_packets& o) {
  if (has_proxy(o.via)) return m.push(Action::pack, o.port_channels, o.slice, o.src, o.dst);
  return copy_to_packets(m, o.slice, o.src, o.dst);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::read_put_packets& o) {
  if (!has_proxy(o.via)) return forward_packets(m, o.slice, o.src, o.dst);
  // The block waits for the data. The proxy never does, because one channel would hold up another.
  const Stop stop = forward_packets(m, o.slice, o.src, op::Places<Role::RemotePacketWrite>{});
  if (stop != Stop::none) return stop;
  return m.push(Action::copy_packets, o.port_channels, o.slice, o.src, o.dst);
}

// -- Reductions

template <class M>
CHORALE_FN Stop run(M& m, const op::reduce& o) {
  return reduce_plain(m, o.reduce_op, o.slice, o.src, o.others, o.dst);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::reduce_send& o) {
  return reduce_plain(m, o.reduce_op, o.slice, o.src, o.others, o.dst, o.remote);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::read_reduce& o) {
  return reduce_plain(m, o.reduce_op, o.slice, o.src, o.others, o.dst);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::read_reduce_send& o) {
  return reduce_plain(m, o.reduce_op, o.slice, o.src, o.others, o.dst, o.remote);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::reduce_packets& o) {
  return reduce_packets_to(m, o.reduce_op, o.slice, o.src, o.others, o.dst);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::reduce_send_packets& o) {
  return reduce_packets_to(m, o.reduce_op, o.slice, o.src, o.others, o.dst, {}, o.remote);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::reduce_copy_packets& o) {
  return reduce_packets_to(m, o.reduce_op, o.slice, o.src, o.others, o.dst, o.packets);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::reduce_copy_send_packets& o) {
  return reduce_packets_to(m, o.reduce_op, o.slice, o.src, o.others, o.dst, o.packets, o.remote);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::combine_packets& o) {
  return combine_packets_to(m, o.reduce_op, o.slice, o.src, o.dst);
}

// -- Switch channels

template <class M>
CHORALE_FN Stop run(M& m, const op::switch_reduce& o) {
  const Stop stop = m.reach(o.src);
  if (stop != Stop::none) return stop;
  return pieces::each(
      m, m.range(o.src[0].bytes, {}),
      [&](uint64_t at, uint64_t bytes) {
        const pieces::Members from = pieces::members(m, o.src, at);
        const Stop stopped = m.reduce_members(o.reduce_op, bytes, from, pieces::memory(m, o.dst, 0, at));
        m.release_lists();
        return stopped;
      },
      o.src, o.dst);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::switch_broadcast& o) {
  const Stop stop = m.reach(o.dst);
  if (stop != Stop::none) return stop;
  return pieces::each(
      m, m.range(o.src[0].bytes, {}),
      [&](uint64_t at, uint64_t bytes) {
        const pieces::Members to = pieces::members(m, o.dst, at);
        const Stop stopped =
            m.move(bytes, pieces::memory(m, o.src, 0, at), MultiStore{to.data, to.n, to.offset, to.valid});
        m.release_lists();
        return stopped;
      },
      o.src, o.dst);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::switch_broadcast_packets& o) {
  return forward_packets(m, {}, o.src, o.dst);
}

template <class M>
CHORALE_FN Stop run(M& m, const op::switch_reduce_broadcast& o) {
  const Stop stop = m.reach(o.src, o.dst);
  if (stop != Stop::none) return stop;
  return pieces::each(
      m, m.range(o.src[0].bytes, {}),
      [&](uint64_t at, uint64_t bytes) {
        const pieces::Members from = pieces::members(m, o.src, at);
        const pieces::Members to = pieces::members(m, o.dst, at);
        const Stop stopped =
            m.reduce_members(o.reduce_op, bytes, from, MultiStore{to.data, to.n, to.offset, to.valid});
        m.release_lists();
        return stopped;
      },
      o.src, o.dst);
}

// -- Control

/// Does nothing: run_block() takes the turns.
template <class M>
CHORALE_FN Stop run(M&, const op::pipeline&) {
  return Stop::none;
}

/// Runs one record. An operation without a run() above does not compile.
template <class M>
CHORALE_FN Stop step(M& m, uint32_t record) {
  const image::Record& of = m.image().records[record];
  m.enter(record);
  switch (of.code) {
#define CHORALE_OP(name, mnemonic, summary, fields) \
  case Opcode::name: \
    return run(m, op::name{op::Cursor(m.image(), of)});
#include "chorale/ops.def"
  }
  return Stop::none;
}

/// Runs a block from beginning to end. A pipeline runs its whole body once per turn; a data operation that
/// has no data left in a turn does nothing. One loop serves records inside and outside a pipeline, so that a
/// GPU's code has every operation once.
template <class M>
CHORALE_FN Stop run_block(M& m, uint32_t block) {
  const image::Block& of = m.image().blocks[block];
  uint32_t body = 0, body_end = 0;  // of the pipeline that runs; none: body_end 0
  uint64_t turn = 0;
  for (uint32_t record = of.first; record < of.first + of.n;) {
    const image::Record& here = m.image().records[record];
    const Stop stop = step(m, record);
    if (stop != Stop::none) return stop;
    ++record;
    if (here.code == Opcode::pipeline) {
      body = record;
      body_end = record + here.body;
      turn = 0;
      if (here.turns == 0 || here.body == 0) {
        record = body_end;
        body_end = 0;
      } else {
        m.turn(0, here.turn_bytes);
      }
    } else if (body_end != 0 && record == body_end) {
      const image::Record& pipeline = m.image().records[body - 1];
      if (++turn < pipeline.turns) {
        m.turn(turn * pipeline.turn_bytes, pipeline.turn_bytes);
        record = body;
      } else {
        m.turn(0, 0);
        body_end = 0;
      }
    }
  }
  return Stop::none;
}

}  // namespace chorale
