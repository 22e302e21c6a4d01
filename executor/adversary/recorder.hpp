#pragma once
/// \file
/// A Recorder is the machine on which the adversary runs semantics.hpp. It moves no data. It records the
/// instructions of each thread of a block.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "chorale/device/engine.hpp"
#include "executor/lowering/recording.hpp"
#include "program.hpp"

namespace chorale::adversary {

/// Represents an instruction of a block. A data instruction is for the thread that owns `unit`. Each other
/// instruction is for a separate thread.
struct BlockInstruction {
  Instruction what;
  bool data = false;
  uint64_t unit = 0;
};

class Recorder : public lowering::Recording {
 public:
  Recorder(Program& program, const image::Image& image, uint32_t rank, uint32_t block, bool even,
           PacketForm packet, std::map<std::pair<uint32_t, uint32_t>, uint32_t>& queues)
      : Recording(image, packet, even), program_(program), rank_(rank), block_(block), queues_(queues) {
    begin(block);
  }

  std::vector<BlockInstruction>& steps() { return steps_; }

  char* base(uint32_t buffer) const {
    const image::Buffer& of = image_.buffers[buffer];
    return of.encoded ? reinterpret_cast<char*>(reinterpret_cast<uint64_t>(of.base) | encoded_tag) : of.base;
  }

  void repeat(uint32_t pipeline) { run_turns(*this, pipeline, 0, image_.records[pipeline].turns); }

  // -- Data

  template <class Source, class Sink>
  void move(uint64_t bytes, const Source& source, const Sink& sink) {
    each_cell(
        bytes,
        [&](uint64_t at) {
          add_source(source, at, 0);
          return ReduceOp::sum;
        },
        sink);
  }

  template <class First, class Other, class Sink>
  void reduce(ReduceOp op, uint64_t bytes, const First& first, const Other* others, uint32_t n,
              const Sink& sink) {
    each_cell(
        bytes,
        [&](uint64_t at) {
          add_source(first, at, 0);
          for (uint32_t other = 0; other < n; ++other) add_source(others[other], at, 0);
          return op;
        },
        sink);
  }

  template <class Sink>
  void reduce_members(ReduceOp op, uint64_t bytes, const pieces::Members& from, const Sink& sink) {
    each_cell(
        bytes,
        [&](uint64_t at) {
          for (uint32_t member = 0; member < from.n; ++member)
            add_source(Mem(from.data[member] + from.offset, from.valid), at, by_switch);
          return op;
        },
        sink);
  }

  // -- Synchronisation: docs/memory-model.md tells at which of these a block's threads wait for each other.

  void sync() { add(Code::sync, 0); }

  void post(const op::Ids& channels, bool relaxed) {
    if (!relaxed) sync();
    for (uint32_t at = 0; at < channels.n; ++at)
      add(Code::post, signal_at_peer(channels.first[at])).relaxed = relaxed;
  }

  void await(const op::Ids& channels, bool relaxed) {
    for (uint32_t at = 0; at < channels.n; ++at)
      add(Code::await, program_.first_signal[rank_] + channels.first[at]).relaxed = relaxed;
    sync();
  }

  void drain(const op::Ids& channels) {
    sync();
    for (uint32_t at = 0; at < channels.n; ++at) add(Code::drain, queue(channels.first[at]));
    sync();
  }

  void acquire(const op::Ids& semaphores) {
    sync();
    for (uint32_t at = 0; at < semaphores.n; ++at) {
      // One thread acquires them one after the other.
      add(Code::acquire, program_.first_semaphore[rank_] + semaphores.first[at]);
      if (at + 1 < semaphores.n) sync();
    }
    sync();
  }

  void release(const op::Ids& semaphores) {
    sync();
    for (uint32_t at = 0; at < semaphores.n; ++at)
      add(Code::release, program_.first_semaphore[rank_] + semaphores.first[at]);
  }

  void arrive(uint32_t id, uint32_t participants) {
    sync();
    add(Code::arrive, program_.first_barrier[rank_] + id).participants = participants;
    sync();
  }

  // -- Port channels

  void push(Action, const op::Ids& channels) {
    for (uint32_t at = 0; at < channels.n; ++at) {
      hand_over({queue(channels.first[at]), 0, 0, true, signal_at_peer(channels.first[at])});
    }
  }

  template <Role S, Role D>
  void push(Action action, const op::Ids& channels, const op::Slice& slice, const op::Places<S>& src,
            const op::Places<D>& dst) {
    for (uint32_t at = 0; at < channels.n; ++at) {
      const op::Places<S> from{&src[src.n == 1 ? 0 : at], 1};
      const op::Places<D> to{&dst[at], 1};
      // The proxy gets the same cells that a thread would move.
      Push push{queue(channels.first[at]), uint32_t(program_.refs.size()), 0, has(action, Action::signal),
                none};
      if (push.posts) push.signal = signal_at_peer(channels.first[at]);
      to_proxy_ = &push;
      if constexpr (D != Role::RemotePacketWrite) {
        copy_plain(*this, slice, from, to);
      } else if constexpr (S == Role::PacketRead) {
        forward_packets(*this, slice, from, to);
      } else {
        copy_to_packets(*this, slice, from, to);
      }
      to_proxy_ = nullptr;
      if (push.cells || push.posts) hand_over(push);
    }
  }

 private:
  static constexpr uint64_t unit_bytes = 16;
  static constexpr uint64_t encoded_tag = uint64_t{1} << 60;  ///< no address of the arena has this bit

  uint32_t queue(uint32_t channel) {
    const auto [found, added] = queues_.try_emplace({block_, channel}, uint32_t(program_.queues.size()));
    if (added) program_.queues.push_back({rank_, program_.first_block[rank_] + block_, channel});
    return found->second;
  }

  uint32_t signal_at_peer(uint32_t channel) const {
    const image::Channel& of = image_.channels[channel];
    if (of.signal_at_peer == image::Channel::none) return none;
    return program_.first_signal[of.peer] + of.signal_at_peer;
  }

  Instruction& add(Code code, uint32_t id) {
    BlockInstruction& step = steps_.emplace_back();
    step.what.code = code;
    step.what.id = id;
    step.what.record = record();
    return step.what;
  }

  void hand_over(const Push& push) {
    sync();
    add(Code::push, uint32_t(program_.pushes.size()));
    program_.pushes.push_back(push);
    sync();
  }

  /// Adds a move for each cell of `bytes` bytes. sources(at) adds the move's sources and returns the operator
  /// that combines them.
  template <class Sources, class Sink>
  void each_cell(uint64_t bytes, const Sources& sources, const Sink& sink) {
    for (uint64_t at = 0; at < bytes; at += program_.arena.cell_bytes()) {
      Instruction move;
      move.code = Code::move;
      move.record = record();
      move.codec = image_.records[first_record() + record()].codec;
      move.first = uint32_t(program_.refs.size());
      move.op = sources(at);
      move.sources = uint16_t(program_.refs.size() - move.first);
      add_sink(sink, at);
      move.dests = uint16_t(program_.refs.size() - move.first - move.sources);
      if (to_proxy_) {
        ++to_proxy_->cells;
      } else {
        steps_.push_back({move, true, at / unit_bytes});
      }
    }
  }

  void add_ref(Ref ref) { program_.refs.push_back(ref); }

  Ref plain(const Mem& place, uint64_t at) {
    if (!place.data || at >= place.valid) return no_cell;
    const uint64_t tagged = reinterpret_cast<uint64_t>(place.data) + at, address = tagged & ~encoded_tag;
    const uint64_t bytes = program_.arena.cell_bytes();
    const Area* const area = program_.arena.find(address, bytes);
    if (!area || area->kind == Area::Kind::packets) return outside();
    const Ref ref = area->first + uint32_t((address - area->base) / bytes);
    return tagged == address ? ref : ref | is_coded;
  }

  template <class P>
  Ref packet(const Packets<P>& place, uint64_t at) {
    const uint64_t address = reinterpret_cast<uint64_t>(place.slots);
    const Area* const area = program_.arena.find(address, sizeof(P));
    if (!area || area->kind != Area::Kind::packets) return outside();
    const uint64_t payload = (address - area->base) / packet_slots<P> * packet_payload<P> + at;
    if (payload / program_.arena.cell_bytes() >= area->cells) return outside();
    return area->first + uint32_t(payload / program_.arena.cell_bytes());
  }

  [[noreturn]] Ref outside() const;

  void add_source(const Mem& place, uint64_t at, Ref how) {
    const Ref ref = plain(place, at);
    add_ref(ref == no_cell ? ref : ref | how);
  }
  template <class P>
  void add_source(const Packets<P>& place, uint64_t at, Ref) {
    add_ref(packet(place, at));
  }

  void add_sink(const Mem& place, uint64_t at, Ref how = 0) {
    const Ref ref = plain(place, at);
    // A proxy's transfer lists a source and a destination for every cell, even if writes to the destination
    // are dropped.
    if (ref != no_cell || to_proxy_) add_ref(ref == no_cell ? ref : ref | how);
  }
  template <class P>
  void add_sink(const Packets<P>& place, uint64_t at) {
    add_ref(packet(place, at));
  }
  template <class S>
  void add_sink(const Many<S>& sinks, uint64_t at) {
    for (uint32_t sink = 0; sink < sinks.n; ++sink) add_sink(sinks.sinks[sink], at);
  }
  void add_sink(const MultiStore& sinks, uint64_t at) {
    for (uint32_t member = 0; member < sinks.n; ++member) add_sink(sinks.member(member), at, by_switch);
  }
  template <class A, class B>
  void add_sink(const Tee<A, B>& sinks, uint64_t at) {
    add_sink(sinks.a, at);
    add_sink(sinks.b, at);
  }

  Program& program_;
  const uint32_t rank_, block_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t>& queues_;
  std::vector<BlockInstruction> steps_;
  Push* to_proxy_ = nullptr;  ///< if set, moves go to this push and not to a thread
};

}  // namespace chorale::adversary
