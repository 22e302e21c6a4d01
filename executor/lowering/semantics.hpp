#pragma once
/// \file
/// This file defines every operation once. It runs on machines that record an operation's effects. The
/// lowering's machine (recording_machine.hpp) makes device programs; the adversary's makes single accesses.
///
/// M is a machine: one thread block of a bound plan. It has
///   image()                        returns the image that it runs from
///   base(buffer), bank(bytes)      tell where a buffer and this run's bank of scratch are
///   range(bytes, slice)            returns the part of an operand for this turn and this block of a group
///   list<T>(n, item)               makes n items by item(k), which live until release_lists()
///   with_packet(f)                 calls f(TypeTag<P>) for the packet form P
///   move(bytes, source, sink)      does transfer() by the block
///   reduce(op, bytes, first, others, n, sink)   does transfer() from Reduced
///   reduce_members(op, bytes, members, sink)    does transfer() from Multi
///   sync()                         orders the block's threads
///   post, await, drain, acquire, release, arrive   synchronise with other blocks and with the proxy
///   push(action, ids, src, dst)    hands a transfer of each pair, a signal, or both to the proxy
///   turn(first, bytes)             sets the part that range() divides; (0, 0): everything
///   repeat(pipeline)               runs the body of a pipeline for all its turns, as run_turns() does

#include <cstdint>

#include "pieces.hpp"

namespace chorale {

/// Names the requests to a port channel's proxy, in the order in which it carries them out.
enum class Action : uint32_t { copy = 1, pack = 2, copy_packets = 4, signal = 8 };
constexpr Action operator|(Action a, Action b) { return Action(uint32_t(a) | uint32_t(b)); }
constexpr bool has(Action all, Action one) { return (uint32_t(all) & uint32_t(one)) != 0; }

template <class M>
void run(M& m, const op::nop&) {
  m.sync();
}

template <class M>
void run(M&, const op::require&) {}

// -- Synchronisation

template <class M>
void run(M& m, const op::barrier& o) {
  return m.arrive(o.arrive.id, o.arrive.participants);
}

template <class M>
void run(M& m, const op::signal& o) {
  // The signal must wait until the proxy has done its earlier work for this channel.
  if (has_proxy(o.via)) return m.push(Action::signal, o.post);
  m.post(o.post, false);
}

template <class M>
void run(M& m, const op::relaxed_signal& o) {
  if (has_proxy(o.via)) return m.push(Action::signal, o.post);
  m.post(o.post, true);
}

template <class M>
void run(M& m, const op::wait& o) {
  return m.await(o.await, false);
}

template <class M>
void run(M& m, const op::relaxed_wait& o) {
  return m.await(o.await, true);
}

template <class M>
void run(M& m, const op::flush& o) {
  return m.drain(o.drain);
}

template <class M>
void run(M& m, const op::sem_acquire& o) {
  return m.acquire(o.acquire);
}

template <class M>
void run(M& m, const op::sem_release& o) {
  m.release(o.release);
}

// -- Copies

template <class M>
void run(M& m, const op::copy& o) {
  return copy_plain(m, o.slice, o.src, o.dst);
}

template <class M>
void run(M& m, const op::copy_packets& o) {
  return copy_to_packets(m, o.slice, o.src, o.dst);
}

template <class M>
void run(M& m, const op::unpack_packets& o) {
  return copy_from_packets(m, o.slice, o.src, o.dst);
}

template <class M>
void run(M& m, const op::get& o) {
  return copy_plain(m, o.slice, o.src, o.dst);
}

template <class M>
void run(M& m, const op::put& o) {
  if (has_proxy(o.via)) return m.push(Action::copy, o.port_channels, o.slice, o.src, o.dst);
  return copy_plain(m, o.slice, o.src, o.dst);
}

template <class M>
void run(M& m, const op::put_with_signal& o) {
  if (has_proxy(o.via)) return m.push(Action::copy | Action::signal, o.post, op::Slice{}, o.src, o.dst);
  copy_plain(m, op::Slice{}, o.src, o.dst);
  m.post(o.post, false);
}

template <class M>
void run(M& m, const op::put_with_signal_and_flush& o) {
  run(m, op::put_with_signal{o.cursor, o.src, o.dst, o.post, o.via});
  if (has_proxy(o.via)) m.drain(o.drain);
}

template <class M>
void run(M& m, const op::put_packets& o) {
  if (has_proxy(o.via)) return m.push(Action::pack, o.port_channels, o.slice, o.src, o.dst);
  return copy_to_packets(m, o.slice, o.src, o.dst);
}

template <class M>
void run(M& m, const op::read_put_packets& o) {
  if (!has_proxy(o.via)) return forward_packets(m, o.slice, o.src, o.dst);
  // The block waits for the data. The proxy never does, because one channel would then delay the others.
  forward_packets(m, o.slice, o.src, op::Places<Role::RemotePacketWrite>{});
  return m.push(Action::copy_packets, o.port_channels, o.slice, o.src, o.dst);
}

// -- Reductions

template <class M>
void run(M& m, const op::reduce& o) {
  return reduce_plain(m, o.reduce_op, o.slice, o.src, o.others, o.dst);
}

template <class M>
void run(M& m, const op::reduce_send& o) {
  return reduce_plain(m, o.reduce_op, o.slice, o.src, o.others, o.dst, o.remote);
}

template <class M>
void run(M& m, const op::read_reduce& o) {
  return reduce_plain(m, o.reduce_op, o.slice, o.src, o.others, o.dst);
}

template <class M>
void run(M& m, const op::read_reduce_send& o) {
  return reduce_plain(m, o.reduce_op, o.slice, o.src, o.others, o.dst, o.remote);
}

template <class M>
void run(M& m, const op::reduce_packets& o) {
  return reduce_packets_to(m, o.reduce_op, o.slice, o.src, o.others, o.dst);
}

template <class M>
void run(M& m, const op::reduce_send_packets& o) {
  return reduce_packets_to(m, o.reduce_op, o.slice, o.src, o.others, o.dst, {}, o.remote);
}

template <class M>
void run(M& m, const op::reduce_copy_packets& o) {
  return reduce_packets_to(m, o.reduce_op, o.slice, o.src, o.others, o.dst, o.packets);
}

template <class M>
void run(M& m, const op::reduce_copy_send_packets& o) {
  return reduce_packets_to(m, o.reduce_op, o.slice, o.src, o.others, o.dst, o.packets, o.remote);
}

template <class M>
void run(M& m, const op::combine_packets& o) {
  return combine_packets_to(m, o.reduce_op, o.slice, o.src, o.dst);
}

// -- Switch channels

template <class M>
void run(M& m, const op::switch_reduce& o) {
  pieces::each(
      m, m.range(o.src[0].bytes, {}),
      [&](uint64_t at, uint64_t bytes) {
        const pieces::Members from = pieces::members(m, o.src, at);
        m.reduce_members(o.reduce_op, bytes, from, pieces::memory(m, o.dst, 0, at));
        m.release_lists();
      },
      o.src, o.dst);
}

template <class M>
void run(M& m, const op::switch_broadcast& o) {
  pieces::each(
      m, m.range(o.src[0].bytes, {}),
      [&](uint64_t at, uint64_t bytes) {
        const pieces::Members to = pieces::members(m, o.dst, at);
        m.move(bytes, pieces::memory(m, o.src, 0, at), MultiStore{to.data, to.n, to.offset, to.valid});
        m.release_lists();
      },
      o.src, o.dst);
}

template <class M>
void run(M& m, const op::switch_broadcast_packets& o) {
  return forward_packets(m, {}, o.src, o.dst);
}

template <class M>
void run(M& m, const op::switch_reduce_broadcast& o) {
  pieces::each(
      m, m.range(o.src[0].bytes, {}),
      [&](uint64_t at, uint64_t bytes) {
        const pieces::Members from = pieces::members(m, o.src, at);
        const pieces::Members to = pieces::members(m, o.dst, at);
        m.reduce_members(o.reduce_op, bytes, from, MultiStore{to.data, to.n, to.offset, to.valid});
        m.release_lists();
      },
      o.src, o.dst);
}

// -- Control

/// Does nothing, because run_block() makes the machine repeat the body.
template <class M>
void run(M&, const op::pipeline&) {}

/// Runs one record. An operation without a run() above does not compile.
template <class M>
void step(M& m, uint32_t record) {
  const image::Record& of = m.image().records[record];
  m.enter(record);
  switch (of.code) {
#define CHORALE_OP(name, mnemonic, summary, fields) \
  case Opcode::name: \
    return run(m, op::name{op::Cursor(m.image(), of)});
#include "chorale/ops.def"
  }
}

/// Runs the body of a pipeline for one turn. A data operation that has no data left in a turn does nothing.
template <class M>
void run_turn(M& m, uint32_t pipeline, uint64_t turn) {
  const image::Record& of = m.image().records[pipeline];
  m.turn(turn * of.turn_bytes, of.turn_bytes);
  for (uint32_t at = 1; at <= of.body; ++at) step(m, pipeline + at);
  m.turn(0, 0);
}

/// Runs the body of a pipeline for turns `first` up to `end`, exclusive.
template <class M>
void run_turns(M& m, uint32_t pipeline, uint64_t first, uint64_t end) {
  for (uint64_t turn = first; turn < end; ++turn) run_turn(m, pipeline, turn);
}

/// Runs a block from beginning to end.
template <class M>
void run_block(M& m, uint32_t block) {
  const image::Block& of = m.image().blocks[block];
  for (uint32_t record = of.first; record < of.first + of.n; ++record) {
    step(m, record);
    const image::Record& here = m.image().records[record];
    if (here.code != Opcode::pipeline) continue;
    m.repeat(record);
    record += here.body;
  }
}

}  // namespace chorale
