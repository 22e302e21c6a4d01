/// \file
/// A RecordingMachine records the steps of a thread block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "../interpreter/recording.hpp"
#include "../remote/far_place.hpp"
#include "chorale/device/engine.hpp"
#include "chorale/error.hpp"
#include "recorder.hpp"
#include "steps.hpp"

namespace chorale::cuda {

/// semantics.hpp runs on this machine here. It does nothing, and notes what a thread block has to do.
class RecordingMachine : public interpreter::Recording {
 public:
  RecordingMachine(const image::Image& image, const TapePlaces& places, PacketForm packet, bool even,
                   const std::vector<uint32_t>& waiters)
      : Recording(image, packet, even), places_(places), waiters_(waiters) {}

  std::vector<Step>& steps() { return steps_; }
  size_t counts() const { return slots_.size(); }
  uint64_t staged_bytes() const { return staged_bytes_; }
  using Recording::begin;

  /// Makes the block wait until the proxy has read all that the block has handed to it, since the caller may
  /// overwrite it after the launch. The wait counts as part of the last operation.
  void end() {
    if (pushed_.empty()) return;
    Step& step = other(TapeKind::drain);
    for (const uint32_t channel : pushed_) add_drain(step, channel);
  }

  char* base(uint32_t buffer) const {
    if (buffer == 0) return reinterpret_cast<char*>(TapePlace::in);
    if (buffer == 1) return reinterpret_cast<char*>(TapePlace::out);
    const image::Buffer& of = image_.buffers[buffer];
    if (of.slice_bytes == 0 || !of.base) return of.base;
    return reinterpret_cast<char*>(reinterpret_cast<uint64_t>(of.base) | TapePlace::sliced);
  }

  // -- Data

  template <class Source, class Sink>
  Stop move(uint64_t bytes, const Source& source, const Sink& sink) {
    if constexpr (std::is_same_v<Sink, MultiStore>) {
      return by_switch(TapeKind::multicast_store, ReduceOp::sum, bytes, source, sink, sink.n,
                       [&](uint64_t first, uint64_t n) {
                         return move_plainly(n, behind(source, first), behind(sink, first));
                       });
    } else {
      return move_plainly(bytes, source, sink);
    }
  }

  template <class Source, class Sink>
  Stop move_plainly(uint64_t bytes, const Source& source, const Sink& sink) {
    Step& step = data(std::is_same_v<Source, Mem> ? TapeKind::copy : TapeKind::unpack, bytes);
    add(step, source);
    step.step.n = 1;
    add_sinks(step, sink);
    return Stop::none;
  }

  template <class First, class Other, class Sink>
  Stop reduce(ReduceOp op, uint64_t bytes, const First& first, const Other* others, uint32_t n,
              const Sink& sink) {
    constexpr bool plain_first = std::is_same_v<First, Mem>, plain = std::is_same_v<Other, Mem>;
    static_assert(plain_first || !plain, "packets, then plain memory: no operation does so");
    Step& step = data(plain ? TapeKind::reduce : TapeKind::reduce_packets, bytes);
    step.step.reduce_op = uint8_t(op);
    add(step, first);
    for (uint32_t other = 0; other < n; ++other) add(step, others[other]);
    step.step.n = uint16_t(plain || plain_first ? n : 1 + n);
    step.step.own = !plain && plain_first;
    add_sinks(step, sink);
    return Stop::none;
  }

  template <class Sink>
  Stop reduce_members(ReduceOp op, uint64_t bytes, const pieces::Members& from, const Sink& sink) {
    constexpr bool to_all = std::is_same_v<Sink, MultiStore>;
    return by_switch(to_all ? TapeKind::multicast_pass : TapeKind::multicast_reduce, op, bytes, from, sink,
                     from.n, [&](uint64_t first, uint64_t n) {
                       std::vector<Mem> members;
                       for (uint32_t member = 0; member < from.n; ++member)
                         members.push_back(behind(Mem(from.data[member] + from.offset, from.valid), first));
                       return reduce(op, n, members[0], members.data() + 1, from.n - 1, behind(sink, first));
                     });
  }

  /// Waits for nothing, because peers' memory was mapped when the plan was bound.
  template <Role... R>
  Stop reach(const op::Places<R>&...) const {
    return Stop::none;
  }

  // -- Synchronisation

  void sync() { other(TapeKind::sync); }

  void post(const op::Ids& channels, bool relaxed) {
    Step& step = other(relaxed ? TapeKind::post_relaxed : TapeKind::post);
    for (uint32_t at = 0; at < channels.n; ++at) {
      if (Signal* const there = places_.signals_at_peer[channels.first[at]]) item(step).post = {there};
    }
  }

  Stop await(const op::Ids& channels, bool relaxed) {
    Step& step = other(relaxed ? TapeKind::await_relaxed : TapeKind::await);
    for (uint32_t at = 0; at < channels.n; ++at) {
      const uint32_t channel = channels.first[at];
      const bool shared = waiters_[channel] > 1;
      const uint32_t slot = shared ? 0 : slots_.try_emplace(channel, uint32_t(slots_.size())).first->second;
      item(step).await = {places_.signals[channel], shared ? places_.expected + channel : nullptr, slot,
                          image_.channels[channel].peer, record()};
    }
    return Stop::none;
  }

  Stop drain(const op::Ids& channels) {
    Step& step = other(TapeKind::drain);
    for (uint32_t at = 0; at < channels.n; ++at) {
      add_drain(step, channels.first[at]);
      pushed_.erase(channels.first[at]);
    }
    return Stop::none;
  }

  Stop acquire(const op::Ids& semaphores) {
    Step& step = other(TapeKind::acquire);
    for (uint32_t at = 0; at < semaphores.n; ++at)
      item(step).permit = {places_.semaphores + semaphores.first[at]};
    return Stop::none;
  }

  void release(const op::Ids& semaphores) {
    Step& step = other(TapeKind::release);
    for (uint32_t at = 0; at < semaphores.n; ++at)
      item(step).permit = {places_.semaphores + semaphores.first[at]};
  }

  Stop arrive(uint32_t id, uint32_t participants) {
    item(other(TapeKind::barrier)).meeting = {places_.barriers + id, participants};
    return Stop::none;
  }

  // -- Port channels

  Stop push(Action action, const op::Ids& channels) {
    Step& step = other(TapeKind::push);
    for (uint32_t at = 0; at < channels.n; ++at) {
      item(step).push = {places_.pushed + channels.first[at], channels.first[at], has(action, Action::signal),
                         ~0u, ~0u};
    }
    return Stop::none;
  }

  template <Role S, Role D>
  Stop push(Action action, const op::Ids& channels, const op::Slice& slice, const op::Places<S>& src,
            const op::Places<D>& dst) {
    if constexpr (D == Role::RemotePacketWrite) {
      // Packets tell by themselves that they have come, so they need no order after the proxy's work. The
      // block stores them, as through a memory channel.
      const size_t first = steps_.size();
      if (has(action, Action::pack)) {
        copy_to_packets(*this, slice, src, dst);
      } else {
        forward_packets(*this, slice, src, dst);
      }
      stage_far_packets(first, channels);
      return Stop::none;
    } else {
      for (uint32_t at = 0; at < channels.n; ++at) {
        const op::Places<S> from{&src[src.n == 1 ? 0 : at], 1};
        const op::Places<D> to{&dst[at], 1};
        // The proxy copies each piece as it is. The signal goes after the last one.
        const image::Range part = range(from[0].bytes, slice);
        pieces::each(
            *this, part,
            [&](uint64_t first, uint64_t bytes) {
              const Mem source = pieces::memory(*this, from, 0, first),
                        sink = pieces::memory(*this, to, 0, first);
              const uint64_t exist = std::min({bytes, source.valid, sink.valid});
              if (source.data && sink.data && exist != 0)
                push_one(channels.first[at], source, sink, exist, false);
              return Stop::none;
            },
            from, to);
        if (has(action, Action::signal)) push_one(channels.first[at], {}, {}, 0, true);
      }
      return Stop::none;
    }
  }

 private:
  /// Moves whole units by the switch, if the binding uses it, and what is before and after them by `plainly`.
  /// A channel of one rank does not need the switch.
  template <class Source, class Sink, class Plainly>
  Stop by_switch(TapeKind kind, ReduceOp op, uint64_t bytes, const Source& source, const Sink& sink,
                 uint32_t members, const Plainly& plainly) {
    if (!places_.switches || members < 2) return plainly(0, bytes);
    TapePlace from = place_of(source), to = place_of(sink);
    const UnitsWithin units = units_within(bytes, from, to);
    if (units.bytes == 0) return plainly(0, bytes);
    if (units.first != 0) plainly(0, units.first);
    Step& step = data(kind, units.bytes);
    step.step.reduce_op = uint8_t(op);
    step.step.plain_sinks = 1;
    for (TapePlace* place : {&from, &to}) {
      place->at += units.first;
      place->valid = units.bytes;
      step.plain.push_back(*place);
    }
    const uint64_t done = units.first + units.bytes;
    return done == bytes ? Stop::none : plainly(done, bytes - done);
  }

  static TapePlace place_of(const Mem& place) {
    return {reinterpret_cast<uint64_t>(place.data), 0, place.data ? place.valid : 0};
  }
  /// Returns the place of a pieces::Members or a MultiStore.
  TapePlace place_of(char* const* data, uint32_t n, uint64_t offset, uint64_t valid) const {
    char* const at = places_.switches->find(data, n, offset);
    if (at) return {reinterpret_cast<uint64_t>(at), 0, valid};
    throw UsageError(
        "operation " + std::to_string(record()) +
        " of a thread block goes through a switch channel whose members have its place in different places "
        "of "
        "their buffers' memory, which multicast cannot reach at once: take switch_channels = peer");
  }
  TapePlace place_of(const pieces::Members& from) const {
    return place_of(from.data, from.n, from.offset, from.valid);
  }
  TapePlace place_of(const MultiStore& to) const { return place_of(to.members, to.n, to.offset, to.valid); }

  static Mem behind(const Mem& place, uint64_t bytes) {
    if (bytes == 0 || !place.data) return place;
    const uint64_t gone = place.valid == unlimited ? 0 : std::min(bytes, place.valid);
    return Mem(static_cast<void*>(place.data + bytes), place.valid - gone);
  }
  static MultiStore behind(MultiStore to, uint64_t bytes) {
    to.offset += bytes;
    if (to.valid != unlimited) to.valid -= std::min(bytes, to.valid);
    return to;
  }

  Step& other(TapeKind kind) {
    Step& step = steps_.emplace_back();
    step.step.kind = kind;
    step.step.op = record();
    return step;
  }

  Step& data(TapeKind kind, uint64_t bytes) {
    Step& step = other(kind);
    step.step.bytes = bytes;
    return step;
  }

  TapeItem& item(Step& step) {
    ++step.step.n;
    return step.items.emplace_back(TapeItem{});
  }

  void add_drain(Step& step, uint32_t channel) {
    item(step).drain = {places_.pushed + channel, places_.completed + channel};
  }

  void push_one(uint32_t channel, const Mem& from, const Mem& to, uint64_t bytes, bool signal) {
    Step& step = data(TapeKind::push, bytes);
    TapeItem& what = item(step);
    what.push = {places_.pushed + channel, channel, signal, ~0u, ~0u};
    if (bytes == 0) return;
    pushed_.insert(channel);
    what.push.from = 0;
    what.push.to = 1;
    add(step, from);
    add(step, to);
  }

  /// Makes steps from `first` on store here what they would store at other hosts; the proxy sends it as it
  /// is. Flags are the same there, because all ranks are in the same launch.
  void stage_far_packets(size_t first, const op::Ids& channels) {
    for (size_t at = first, end = steps_.size(); at < end; ++at) {
      const uint64_t bytes = interpreter::packet_bytes_of(packet(), steps_[at].step.bytes);
      const size_t places = steps_[at].packets.size();
      for (size_t place = places - steps_[at].step.packet_sinks; place < places; ++place) {
        const uint64_t there = steps_[at].packets[place].at;
        if (!remote::FarPlace::is(there)) continue;
        const uint64_t here = reinterpret_cast<uint64_t>(places_.staging) + staged_bytes_;
        staged_bytes_ += (bytes + 127) / 128 * 128;
        steps_[at].packets[place].at = here;
        push_one(channel_to(remote::FarPlace::of(reinterpret_cast<const void*>(there)).rank, channels),
                 Mem(reinterpret_cast<void*>(here), bytes), Mem(reinterpret_cast<void*>(there), bytes), bytes,
                 false);
      }
    }
  }

  /// Returns the channel that leads to `rank`.
  uint32_t channel_to(uint32_t rank, const op::Ids& channels) const {
    uint32_t at = 0;
    while (at + 1 < channels.n && image_.channels[channels.first[at]].peer != rank) ++at;
    return channels.first[at];
  }

  void add(Step& step, const Mem& place) { step.plain.push_back(place_of(place)); }
  template <class P>
  void add(Step& step, const Packets<P>& place) {
    step.packets.push_back({reinterpret_cast<uint64_t>(place.slots), 0, 0});
  }

  void add_sinks(Step& step, const Mem& sink) {
    ++step.step.plain_sinks;
    add(step, sink);
  }
  template <class P>
  void add_sinks(Step& step, const Packets<P>& sink) {
    ++step.step.packet_sinks;
    add(step, sink);
  }
  template <class S>
  void add_sinks(Step& step, const Many<S>& sinks) {
    for (uint32_t sink = 0; sink < sinks.n; ++sink) add_sinks(step, sinks.sinks[sink]);
  }
  void add_sinks(Step& step, const MultiStore& sinks) {
    for (uint32_t member = 0; member < sinks.n; ++member) add_sinks(step, sinks.member(member));
  }
  template <class A, class B>
  void add_sinks(Step& step, const Tee<A, B>& sinks) {
    add_sinks(step, sinks.a);
    add_sinks(step, sinks.b);
  }

  const TapePlaces places_;
  const std::vector<uint32_t>& waiters_;
  std::vector<Step> steps_;
  std::map<uint32_t, uint32_t> slots_;  ///< of this block's counts, by channel
  std::set<uint32_t> pushed_;           ///< channels with data that the block has not waited for
  uint64_t staged_bytes_ = 0;
};

}  // namespace chorale::cuda
