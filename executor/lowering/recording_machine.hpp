#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "chorale/device/engine.hpp"
#include "chorale/error.hpp"
#include "far_place.hpp"
#include "loops.hpp"
#include "lower.hpp"
#include "pages.hpp"
#include "recording.hpp"
#include "steps.hpp"

namespace chorale::lowering {

/// Records the work of a thread block when semantics.hpp runs on it.
class RecordingMachine : public Recording {
 public:
  /// \param loop_bytes the most memory of a page for a loop; 0: pipelines are unrolled
  RecordingMachine(const image::Image& image, const ProgramAddresses& places, PacketForm packet, bool even,
                   const std::vector<uint32_t>& waiters, uint64_t loop_bytes)
      : Recording(image, packet, even), places_(places), waiters_(waiters), loop_bytes_(loop_bytes) {}

  std::vector<RecordedStep>& steps() { return steps_; }
  size_t counts() const { return slots_.size(); }
  uint64_t staged_bytes() const { return staged_bytes_; }
  void begin(uint32_t block) {
    Recording::begin(block);
    steps_.reserve(image_.blocks[block].n);
  }

  /// Makes the block wait until the proxy has read all data that the block has handed to it, because the
  /// caller may overwrite the data after the launch. The wait counts as part of the last operation.
  void end() {
    if (pushed_.empty()) return;
    RecordedStep& step = other(ProgramStepKind::drain);
    for (const uint32_t channel : pushed_) add_drain(step, channel);
  }

  char* base(uint32_t buffer) const {
    if (buffer == 0) return reinterpret_cast<char*>(ProgramPlace::in);
    if (buffer == 1) return reinterpret_cast<char*>(ProgramPlace::out);
    const image::Buffer& of = image_.buffers[buffer];
    if (of.encoded) return reinterpret_cast<char*>(reinterpret_cast<uint64_t>(of.base) | encoded_tag);
    if (of.slice_bytes == 0 || !of.base) return of.base;
    return reinterpret_cast<char*>(reinterpret_cast<uint64_t>(of.base) | ProgramPlace::sliced);
  }

  /// Records one turn for all turns that differ only in their places, and makes a loop of them.
  void repeat(uint32_t pipeline) {
    const uint64_t turns = image_.records[pipeline].turns;
    for (uint64_t turn = 0; turn < turns;) {
      const uint64_t alike =
          loop_bytes_ != 0 ? std::min(turns_alike(image_, pipeline, turn), turns - turn) : 1;
      const size_t begin = steps_.size();
      const uint64_t staged = staged_bytes_;
      run_turn(*this, pipeline, turn);
      if (alike < least_turns || !make_loop(pipeline, turn, alike, begin, staged)) {
        run_turns(*this, pipeline, turn + 1, turn + alike);
      }
      turn += alike;
    }
  }

  // -- Data

  template <class Source, class Sink>
  void move(uint64_t bytes, const Source& source, const Sink& sink) {
    if constexpr (std::is_same_v<Sink, MultiStore>) {
      return by_switch(ProgramStepKind::multicast_store, ReduceOp::sum, bytes, source, sink, sink.n,
                       [&](uint64_t first, uint64_t n) {
                         return move_plainly(n, behind(source, first), behind(sink, first));
                       });
    } else {
      return move_plainly(bytes, source, sink);
    }
  }

  template <class Source, class Sink>
  void move_plainly(uint64_t bytes, const Source& source, const Sink& sink) {
    RecordedStep& step =
        data(std::is_same_v<Source, Mem> ? ProgramStepKind::copy : ProgramStepKind::unpack, bytes);
    add(step, source);
    step.step.n = 1;
    add_sinks(step, sink);
    mark_coded(step);
  }

  template <class First, class Other, class Sink>
  void reduce(ReduceOp op, uint64_t bytes, const First& first, const Other* others, uint32_t n,
              const Sink& sink) {
    constexpr bool plain_first = std::is_same_v<First, Mem>, plain = std::is_same_v<Other, Mem>;
    static_assert(plain_first || !plain, "no operation reads packets and then plain memory");
    RecordedStep& step = data(plain ? ProgramStepKind::reduce : ProgramStepKind::reduce_packets, bytes);
    step.step.reduce_op = uint8_t(op);
    add(step, first);
    for (uint32_t other = 0; other < n; ++other) add(step, others[other]);
    step.step.n = uint16_t(plain || plain_first ? n : 1 + n);
    step.step.own = !plain && plain_first;
    add_sinks(step, sink);
    mark_coded(step);
  }

  template <class Sink>
  void reduce_members(ReduceOp op, uint64_t bytes, const pieces::Members& from, const Sink& sink) {
    constexpr bool to_all = std::is_same_v<Sink, MultiStore>;
    return by_switch(to_all ? ProgramStepKind::multicast_pass : ProgramStepKind::multicast_reduce, op, bytes,
                     from, sink, from.n, [&](uint64_t first, uint64_t n) {
                       std::vector<Mem> members;
                       for (uint32_t member = 0; member < from.n; ++member)
                         members.push_back(behind(Mem(from.data[member] + from.offset, from.valid), first));
                       return reduce(op, n, members[0], members.data() + 1, from.n - 1, behind(sink, first));
                     });
  }

  // -- Synchronisation

  void sync() { other(ProgramStepKind::sync); }

  void post(const op::Ids& channels, bool relaxed) {
    RecordedStep& step = other(relaxed ? ProgramStepKind::post_relaxed : ProgramStepKind::post);
    for (uint32_t at = 0; at < channels.n; ++at) {
      if (Signal* const there = places_.signals_at_peer[channels.first[at]]) item(step).post = {there};
    }
  }

  void await(const op::Ids& channels, bool relaxed) {
    RecordedStep& step = other(relaxed ? ProgramStepKind::await_relaxed : ProgramStepKind::await);
    for (uint32_t at = 0; at < channels.n; ++at) {
      const uint32_t channel = channels.first[at];
      const bool shared = waiters_[channel] > 1;
      const uint32_t slot = shared ? 0 : slots_.try_emplace(channel, uint32_t(slots_.size())).first->second;
      item(step).await = {places_.signals[channel],
                          shared ? places_.expected + channel : nullptr,
                          slot,
                          image_.channels[channel].peer,
                          record(),
                          0};
    }
  }

  void drain(const op::Ids& channels) {
    RecordedStep& step = other(ProgramStepKind::drain);
    for (uint32_t at = 0; at < channels.n; ++at) {
      add_drain(step, channels.first[at]);
      pushed_.erase(channels.first[at]);
    }
  }

  void acquire(const op::Ids& semaphores) {
    RecordedStep& step = other(ProgramStepKind::acquire);
    for (uint32_t at = 0; at < semaphores.n; ++at)
      item(step).permit = {places_.semaphores + semaphores.first[at]};
  }

  void release(const op::Ids& semaphores) {
    RecordedStep& step = other(ProgramStepKind::release);
    for (uint32_t at = 0; at < semaphores.n; ++at)
      item(step).permit = {places_.semaphores + semaphores.first[at]};
  }

  void arrive(uint32_t id, uint32_t participants) {
    item(other(ProgramStepKind::barrier)).barrier = {places_.barriers + id, participants};
  }

  // -- Port channels

  void push(Action action, const op::Ids& channels) {
    RecordedStep& step = other(ProgramStepKind::push);
    for (uint32_t at = 0; at < channels.n; ++at) {
      item(step).push = {places_.pushed + channels.first[at], channels.first[at], has(action, Action::signal),
                         ~0u, ~0u};
    }
  }

  template <Role S, Role D>
  void push(Action action, const op::Ids& channels, const op::Slice& slice, const op::Places<S>& src,
            const op::Places<D>& dst) {
    if constexpr (D == Role::RemotePacketWrite) {
      // Packets carry their own arrival flags, so they need no order after the proxy's work. The block stores
      // them as it does over a memory channel.
      const size_t first = steps_.size();
      if (has(action, Action::pack)) {
        copy_to_packets(*this, slice, src, dst);
      } else {
        forward_packets(*this, slice, src, dst);
      }
      stage_far_packets(first, channels);
    } else {
      for (uint32_t at = 0; at < channels.n; ++at) {
        const op::Places<S> from{&src[src.n == 1 ? 0 : at], 1};
        const op::Places<D> to{&dst[at], 1};
        // The proxy copies each piece as a unit. The signal follows the last one.
        const image::Range part = range(from[0].bytes, slice);
        pieces::each(
            *this, part,
            [&](uint64_t first, uint64_t bytes) {
              const Mem source = pieces::memory(*this, from, 0, first),
                        sink = pieces::memory(*this, to, 0, first);
              const uint64_t exist = std::min({bytes, source.valid, sink.valid});
              if (source.data && sink.data && exist != 0)
                push_one(channels.first[at], source, sink, exist, false);
            },
            from, to);
        if (has(action, Action::signal)) push_one(channels.first[at], {}, {}, 0, true);
      }
    }
  }

 private:
  /// Moves whole units by the switch if the binding uses it, and the data before and after them by `plainly`.
  /// A channel of one rank does not need the switch.
  template <class Source, class Sink, class Plainly>
  void by_switch(ProgramStepKind kind, ReduceOp op, uint64_t bytes, const Source& source, const Sink& sink,
                 uint32_t members, const Plainly& plainly) {
    if (!places_.switches || members < 2) return plainly(0, bytes);
    ProgramPlace from = place_of(source), to = place_of(sink);
    const UnitsWithin units = units_within(bytes, from, to);
    if (units.bytes == 0) return plainly(0, bytes);
    if (units.first != 0) plainly(0, units.first);
    RecordedStep& step = data(kind, units.bytes);
    step.step.reduce_op = uint8_t(op);
    step.step.plain_sinks = 1;
    for (ProgramPlace* place : {&from, &to}) {
      place->at += units.first;
      place->valid = units.bytes;
      step.plain.push_back(*place);
    }
    const uint64_t done = units.first + units.bytes;
    if (done != bytes) plainly(done, bytes - done);
  }

  /// Makes a loop of the steps from `begin` on, which belong to turn `first`, for up to `turns` turns.
  /// Records the second turn to find the strides of places, and the last one to check that they hold for all
  /// turns. Returns false, and keeps only the first turn, if they do not hold or the turn is too large.
  bool make_loop(uint32_t pipeline, uint64_t first, uint64_t turns, size_t begin, uint64_t staged) {
    std::vector<RecordedStep> body(steps_.begin() + ptrdiff_t(begin), steps_.end());
    if (body.empty()) return true;
    // Each step may still be split into whole units and a tail.
    if (2 * loop_shape(body).shared_bytes() > loop_bytes_) return false;
    const uint64_t staged_each = staged_bytes_ - staged;
    const auto recorded = [&](uint64_t turn) {
      steps_.resize(begin);
      staged_bytes_ = staged + (turn - first) * staged_each;
      run_turn(*this, pipeline, turn);
      return std::vector<RecordedStep>(steps_.begin() + ptrdiff_t(begin), steps_.end());
    };
    const std::vector<RecordedStep> second = recorded(first + 1), last = recorded(first + turns - 1);
    const bool loops = find_strides(body, second) && moved_on(body, turns - 1, last);
    steps_.resize(begin);
    staged_bytes_ = staged + (loops ? turns : 1) * staged_each;
    if (loops) other(ProgramStepKind::loop).step.op = pipeline - first_record();
    for (RecordedStep& step : body) {
      if (!loops) step.plain_strides = step.packet_strides = {};
      step.turns = loops ? turns : 1;
      steps_.push_back(std::move(step));
    }
    if (loops) item(other(ProgramStepKind::repeat)).repeat = {turns, 0};
    return loops;
  }

  /// Returns the shape of a page that holds only a loop with these steps.
  static PageShape loop_shape(const std::vector<RecordedStep>& body) {
    PageShape shape;
    shape.steps = 2;  // `loop` and `repeat`, which has an item
    shape.items = 1;
    for (const RecordedStep& step : body) shape = with_step(shape, step);
    shape.strides = shape.plain + shape.packets;
    return shape;
  }

  static ProgramPlace place_of(const Mem& place) {
    return {reinterpret_cast<uint64_t>(place.data), 0, place.data ? place.valid : 0};
  }
  /// Returns the place of a pieces::Members or a MultiStore.
  ProgramPlace place_of(char* const* data, uint32_t n, uint64_t offset, uint64_t valid) const {
    char* const at = places_.switches->find(data, n, offset);
    if (at) return {reinterpret_cast<uint64_t>(at), 0, valid};
    throw UsageError("operation " + std::to_string(record()) +
                     " of a thread block uses a switch channel whose members have the operand at different "
                     "offsets of their "
                     "buffers' memory, which multicast cannot reach at once: set switch_channels = peer");
  }
  ProgramPlace place_of(const pieces::Members& from) const {
    return place_of(from.data, from.n, from.offset, from.valid);
  }
  ProgramPlace place_of(const MultiStore& to) const {
    return place_of(to.members, to.n, to.offset, to.valid);
  }

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

  RecordedStep& other(ProgramStepKind kind) {
    RecordedStep& step = steps_.emplace_back();
    step.step.kind = kind;
    step.step.op = record();
    return step;
  }

  RecordedStep& data(ProgramStepKind kind, uint64_t bytes) {
    RecordedStep& step = other(kind);
    step.step.bytes = bytes;
    return step;
  }

  SyncItem& item(RecordedStep& step) {
    ++step.step.n;
    return step.items.emplace_back(SyncItem{});
  }

  void add_drain(RecordedStep& step, uint32_t channel) {
    item(step).drain = {places_.pushed + channel, places_.completed + channel};
  }

  void push_one(uint32_t channel, const Mem& from, const Mem& to, uint64_t bytes, bool signal) {
    RecordedStep& step = data(ProgramStepKind::push, bytes);
    SyncItem& what = item(step);
    what.push = {places_.pushed + channel, channel, signal, ~0u, ~0u};
    if (bytes == 0) return;
    pushed_.insert(channel);
    what.push.from = 0;
    what.push.to = 1;
    add(step, from);
    add(step, to);
  }

  /// Redirects steps from `first` on: they store packets here instead of at other hosts, and the proxy sends
  /// them unchanged. Flags are the same there, because all ranks are in the same launch.
  void stage_far_packets(size_t first, const op::Ids& channels) {
    for (size_t at = first, end = steps_.size(); at < end; ++at) {
      const uint64_t bytes = packet_bytes_of(packet(), steps_[at].step.bytes);
      const size_t places = steps_[at].packets.size();
      for (size_t place = places - steps_[at].step.packet_sinks; place < places; ++place) {
        const uint64_t there = steps_[at].packets[place].at;
        if (!remote::FarPlace::is(there)) continue;
        const uint64_t here = places_.staging + staged_bytes_;
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

  void add(RecordedStep& step, const Mem& place) {
    ProgramPlace& of = step.plain.emplace_back(place_of(place));
    of.valid = std::min(of.valid, step.step.bytes);
  }
  template <class P>
  void add(RecordedStep& step, const Packets<P>& place) {
    step.packets.push_back({reinterpret_cast<uint64_t>(place.slots), 0, 0});
  }

  /// Makes a step encode and decode if any of its places is encoded, and moves the tag of base() to `valid`.
  void mark_coded(RecordedStep& step) const {
    for (ProgramPlace& place : step.plain) {
      if (!(place.at & encoded_tag)) continue;
      place.at ^= encoded_tag;
      place.valid = ProgramPlace::encoded;
      step.step.kind = ProgramStepKind::coded;
    }
    if (step.step.kind != ProgramStepKind::coded) return;
    step.step.n = uint16_t(step.plain.size() - step.step.plain_sinks);
    step.step.own = image_.records[first_record() + record()].codec;
  }

  void add_sinks(RecordedStep& step, const Mem& sink) {
    ++step.step.plain_sinks;
    add(step, sink);
  }
  template <class P>
  void add_sinks(RecordedStep& step, const Packets<P>& sink) {
    ++step.step.packet_sinks;
    add(step, sink);
  }
  template <class S>
  void add_sinks(RecordedStep& step, const Many<S>& sinks) {
    for (uint32_t sink = 0; sink < sinks.n; ++sink) add_sinks(step, sinks.sinks[sink]);
  }
  void add_sinks(RecordedStep& step, const MultiStore& sinks) {
    for (uint32_t member = 0; member < sinks.n; ++member) add_sinks(step, sinks.member(member));
  }
  template <class A, class B>
  void add_sinks(RecordedStep& step, const Tee<A, B>& sinks) {
    add_sinks(step, sinks.a);
    add_sinks(step, sinks.b);
  }

  /// Marks the address of encoded data. No address and no tag of ProgramPlace has this bit.
  static constexpr uint64_t encoded_tag = uint64_t{1} << 60;

  static constexpr uint64_t least_turns = 3;  ///< least turns of a loop

  const ProgramAddresses places_;
  const std::vector<uint32_t>& waiters_;
  const uint64_t loop_bytes_;
  std::vector<RecordedStep> steps_;
  std::map<uint32_t, uint32_t> slots_;  ///< slots of this block's counts, by channel
  std::set<uint32_t> pushed_;           ///< channels with data for which the block has not waited
  uint64_t staged_bytes_ = 0;
};

}  // namespace chorale::lowering
