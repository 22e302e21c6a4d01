#pragma once
// These functions send and receive messages tile by tile, with hooks, through the ring with its credits and
// signals.
//
// Sender and receiver use the same number of groups. Each group moves its share over the channel that has its
// id. A tile takes a slot of the ring, and a message begins with a new slot, so the layout is the same in
// every run. The sender waits until the slot is free, fills it and signals. The receiver waits for the
// signal, takes the tile and frees the slot. The host passes nothing and resets nothing between runs.
//
// After a Stop other than none, a group tells its peers nothing more and advances no position. All ranks must
// then reset the links (Transport::reset()).
//
// If two groups each send a message to the other and then receive one, they hang when the messages are longer
// than the ring. Use sendrecv_tiles(), or one group for each direction.

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "chorale/device/checked.hpp"
#include "chorale/device/context.hpp"
#include "chorale/device/deadline.hpp"
#include "chorale/device/divide.hpp"
#include "chorale/device/engine.hpp"
#include "chorale/device/fabrics.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/hook_ends.hpp"
#include "chorale/device/hooks.hpp"
#include "chorale/device/link.hpp"

namespace chorale {

namespace detail {

/// Packs into a word what a sender says about a message. From the top, the word has these fields:
///   8 bits   the step at which the message begins, modulo 256. A ring has at most 256 slots, and each
///            message takes at least one
///   1 bit    always set
///   11 bits  the number of groups that move it
///   12 bits  a hash of the tile size and of the upper half of the size of this group's share
///   32 bits  the lower half of the size of this group's share, in bytes
struct Note {
  uint64_t word = 0;

  CHORALE_FN Note(uint64_t step, uint32_t groups, uint64_t tile_bytes, uint64_t bytes)
      : word((step & 0xff) << 56 | uint64_t(1) << 55 | uint64_t(groups & 0x7ff) << 44 |
             (tile_bytes * 0xbf58476d1ce4e5b9u ^ (bytes >> 32) * 0x9e3779b97f4a7c15u) >> 52 << 32 |
             uint32_t(bytes)) {}
  CHORALE_FN explicit Note(uint64_t word) : word(word) {}

  CHORALE_FN bool of_message(const Note& other) const { return word >> 55 == other.word >> 55; }
  CHORALE_FN uint32_t groups() const { return uint32_t(word >> 44 & 0x7ff); }
  CHORALE_FN uint32_t bytes() const { return uint32_t(word); }
};

/// Tracks how a group's share is divided, and which tile is next.
struct Progress {
  uint64_t slot = 0;                        ///< bytes of a slot of the ring, which holds one tile
  uint64_t start = 0;                       ///< position of the stream, in bytes, when the message began
  uint32_t head = 0;                        ///< slots from there to the first tile
  uint64_t tile_bytes = 0, part_bytes = 0;  ///< bytes of a full tile, and of a part that is signalled at once
  uint64_t tiles = 0, tile = 0;             ///< the number of tiles, and the next one
  /// A collective may interleave `stride` messages in the stream, tile by tile. This one is number `phase`.
  uint32_t stride = 1, phase = 0;

  CHORALE_FN Progress(const Endpoint& e, const Leg& leg, uint64_t position, bool whole_tiles) {
    slot = e.slot_bytes();
    start = position;
    tile_bytes = leg.tile_bytes != 0 ? leg.tile_bytes : detail::quotient(slot, leg.elem) * leg.elem;
    if (tile_bytes == 0 || tile_bytes > slot) refuse_tile(e, leg, tile_bytes == 0);
    if (detail::modulo(leg.tile_bytes, leg.elem) != 0)
      refuse("tile_bytes is not a multiple of the element's size");
    part_bytes = tile_bytes;
    if (leg.signal_bytes != 0 && leg.signal_bytes < tile_bytes && !whole_tiles) {
      part_bytes = whole_units(leg.elem, leg.signal_bytes);
    }
    tiles = detail::quotient(leg.bytes, tile_bytes) + (detail::modulo(leg.bytes, tile_bytes) != 0 ? 1 : 0);
  }

  CHORALE_FN bool more() const { return tile < tiles; }
  CHORALE_FN bool last() const { return tile + 1 == tiles && phase + 1 == stride; }
  CHORALE_FN uint64_t position() const { return start + (head + tile * stride + phase) * slot; }
  CHORALE_FN uint64_t offset() const { return tile * tile_bytes; }
  CHORALE_FN uint64_t end() const { return start + (head + tiles * stride) * slot; }
  CHORALE_FN uint64_t bytes(const Leg& leg) const {
    const uint64_t left = offset() < leg.bytes ? leg.bytes - offset() : 0;
    return left < tile_bytes ? left : tile_bytes;
  }

  /// Refuses a tile or an element that does not fit in a slot.
  /// \param element true if an element is too long, false if a tile is
  CHORALE_FN static void refuse_tile(const Endpoint& e, const Leg& leg, bool element) {
#if defined(__CUDACC__)
    (void)e, (void)leg, (void)element;
    refuse("a slot of the ring does not hold a tile");
#else
    refuse("a slot of the ring does not hold a tile: it has " + std::to_string(e.slot_bytes()) +
           " bytes, and " +
           (element ? "an element " + std::to_string(leg.elem)
                    : "Leg::tile_bytes is " + std::to_string(leg.tile_bytes)) +
           "; give the transport more per_peer_bytes, fewer channels or less depth");
#endif
  }

  /// Returns the note that both ends of a link must agree on for this message; never 0.
  CHORALE_FN Note note(const Leg& leg, const Group& group) const {
    return {detail::quotient(start, slot), group.count, tile_bytes, leg.bytes};
  }
};

template <class X>
CHORALE_FN Ctx<X> context(const Group& group, const Endpoint& e, const Leg& leg, uint64_t tile_bytes,
                          X* extra) {
  Ctx<X> ctx;
  ctx.in = leg.in;
  ctx.out = leg.out;
  ctx.tile_bytes = tile_bytes;
  if (leg.cols != 0) {
    ctx.tile_cols = leg.cols;
    ctx.tile_rows = uint32_t(detail::quotient(detail::quotient(tile_bytes, leg.elem), leg.cols));
  }
  ctx.block = group.id;
  ctx.blocks = group.count;
  ctx.thread = group.rank;
  ctx.threads = group.size;
  ctx.self = e.self;
  ctx.peer = ctx.recv_peer = e.peer;
  ctx.ranks = e.ranks;
  ctx.shard = leg.shard;
  ctx.rows = leg.rows;
  ctx.cols = leg.cols;
  ctx.in_strides = leg.in_strides;
  ctx.out_strides = leg.out_strides;
  ctx.extra = extra;
  return ctx;
}

/// Sets `ctx` for the part of a tile that begins `done` bytes into it and is `bytes` long.
template <class X>
CHORALE_FN void locate(Ctx<X>& ctx, const Endpoint& e, const Leg& leg, const Progress& at, const char* region,
                       uint64_t done, uint64_t bytes) {
  ctx.region = const_cast<char*>(region);
  ctx.slot_base = at.position();
  ctx.tile = at.tile;
  ctx.step = detail::quotient(at.position(), at.slot);
  ctx.slot = uint32_t(detail::modulo(ctx.step, e.depth));
  ctx.index = detail::quotient(leg.begin + at.offset() + done, leg.elem);
  ctx.pos = detail::quotient(done, leg.elem);
  ctx.count = uint32_t(detail::quotient(bytes, leg.elem));
}

/// Returns `ctx` counted in T, as a value hook expects it, for the data that begins `offset` bytes into the
/// share.
template <class T, class X>
CHORALE_FN Ctx<X> in_values(Ctx<X> ctx, const Leg& leg, uint64_t offset) {
  const uint32_t in_element = leg.elem / uint32_t(sizeof(T));
  ctx.index = (leg.begin + offset) / sizeof(T);
  ctx.first *= in_element;
  ctx.pos *= in_element;
  if (leg.cols != 0) ctx.tile_rows = uint32_t(quotient(ctx.tile_bytes / sizeof(T), leg.cols));
  return ctx;
}

/// Fills a sink with `bytes` bytes that `hook` makes, from `offset` bytes into the share. For block hooks the
/// sink is memory. The hook is not called for 0 bytes. (Collectives have empty tiles after the end of a short
/// share.)
template <class T, class Hook, class X, class Sink>
CHORALE_FN void produce(const Group& group, const Leg& leg, const Hook& hook, const Ctx<X>& ctx,
                        uint64_t offset, uint64_t bytes, const Sink& sink) {
  if constexpr (std::is_same_v<Hook, CopyProduce>) {
    transfer(group, bytes, Mem(static_cast<const char*>(leg.in) + leg.begin + offset), sink);
  } else if constexpr (is_block_hook<Hook>) {
    if (bytes != 0) hook.produce(ctx, group, TileOut{sink.data, bytes});
  } else {
    const Ctx<X> here = in_values<T>(ctx, leg, offset);
    transfer(group, bytes, Produced<T, Hook, X>{hook, here}, sink);
  }
}

/// Returns the sink that hands its data to `hook`; not for block hooks.
template <class T, class Hook, class X>
CHORALE_FN auto sink_of(const Leg& leg, const Hook& hook, const Ctx<X>& ctx, uint64_t offset) {
  if constexpr (std::is_same_v<Hook, CopyConsume>) {
    return leg.out ? Mem(static_cast<char*>(leg.out) + leg.begin + offset) : Mem();
  } else {
    return Consumed<T, Hook, X>{hook, in_values<T>(ctx, leg, offset)};
  }
}

template <class T, class Hook, class X, class Source>
CHORALE_FN Stop consume(const Group& group, const Leg& leg, const Hook& hook, const Ctx<X>& ctx,
                        uint64_t offset, uint64_t bytes, const Source& source) {
  if constexpr (is_block_hook<Hook>) {
    if (bytes != 0) hook.consume(ctx, group, TileIn{source.data, bytes});
    return Stop::none;
  } else {
    return transfer(group, bytes, source, sink_of<T>(leg, hook, ctx, offset));
  }
}

CHORALE_FN void refuse_elements(uint32_t elem, uint32_t size) {
#if defined(__CUDACC__)
  (void)elem, (void)size;
  refuse("Leg::elem is not a whole number of elements");
#else
  refuse("Leg::elem is " + std::to_string(elem) + ", but the elements on the link have " +
         std::to_string(size) + " bytes: make it a multiple of that, or 1, for one of them");
#endif
}

template <class T>
CHORALE_FN Leg typed(Leg leg) {
  if (leg.elem == 1) leg.elem = uint32_t(sizeof(T));
  if (leg.elem == 0 || leg.elem % sizeof(T) != 0) refuse_elements(leg.elem, uint32_t(sizeof(T)));
  return leg;
}

/// Refuses a fabric that does not match the link. If only a proxy reaches a peer, a kernel cannot write to
/// the link's memory. Builds for speed do not check.
template <class Ops>
CHORALE_FN void check_fabric(const Endpoint& e) {
#if defined(__CUDACC__)
  if (CHORALE_CHECKED && !fits<Ops>(e)) refuse("the link needs another fabric: see with_link()");
#else
  if (fits<Ops>(e)) return;
  refuse("the link of rank " + std::to_string(e.self) + " to rank " + std::to_string(e.peer) +
         " needs the fabric " + fabric_of(e.kind) + ", but this transfer uses " + fabric_name<Ops>() +
         (std::is_same_v<Ops, Direct> ? ", the default of send_tiles() and similar functions" : "") +
         "; let the link choose the fabric: with_link(endpoint, [&](auto fabric) { ...<T, "
         "decltype(fabric)>(...) })");
#endif
}

template <class T, class Ops, class Hook, class X>
class Sender {
 public:
  CHORALE_FN Sender(const Group& group, const Endpoint& e, const Leg& message, const Hook& hook,
                    const Deadline& deadline, X* extra, int32_t recv_peer)
      : group_(group),
        e_(e),
        leg_(typed<T>(message)),
        hook_(hook),
        deadline_(deadline),
        at_(e, leg_, load_relaxed(&e.local->cursor.sent), is_block_hook<Hook>),
        ctx_(context(group, e, leg_, at_.tile_bytes, extra)) {
    check_fabric<Ops>(e);
    ctx_.recv_peer = recv_peer;
  }

  CHORALE_FN bool more() const { return at_.more(); }
  CHORALE_FN uint64_t tiles() const { return at_.tiles; }

  /// Sends the next tile.
  CHORALE_FN Stop step() {
    const uint64_t position = at_.position(), bytes = at_.bytes(leg_);
    const uint64_t behind = position + at_.slot;
    // Always wait before the first tile. The wait synchronises, so all threads have read the position before
    // the leader advances it.
    if (behind > e_.window || at_.tile == 0) {
      const Stop stop = Ops::wait_free(group_, e_, behind > e_.window ? behind - e_.window : 0, deadline_);
      if (stop != Stop::none) return stop;
    }
    char* const region = Ops::stage(e_, position);
    for (uint64_t done = 0; done < bytes; done += at_.part_bytes) {
      const uint64_t left = bytes - done, part = left < at_.part_bytes ? left : at_.part_bytes;
      locate(ctx_, e_, leg_, at_, region, done, part);
      produce<T>(group_, leg_, hook_, ctx_, at_.offset() + done, part, Mem(region + done));
      const bool last = done + part == bytes && at_.last();
      const uint64_t note = CHORALE_CHECKED && at_.tile == 0 && done == 0 ? at_.note(leg_, group_).word : 0;
      const Stop stop =
          signal_and_advance<Ops>(group_, e_, last, &e_.local->cursor.sent, at_.start, at_.end(), [&] {
            return Ops::signal(group_, e_, position + done, position + units_of(done + part) * unit_bytes,
                               note, deadline_);
          });
      if (stop != Stop::none) return stop;
    }
    ++at_.tile;
    return Stop::none;
  }

 private:
  const Group& group_;
  const Endpoint& e_;
  const Leg leg_;
  const Hook& hook_;
  const Deadline& deadline_;
  Progress at_;
  Ctx<X> ctx_;
};

/// Refuses a sender's message that differs from the expected one. `pieces` names the units in which it is
/// sent, because messages of equal length may differ in them.
CHORALE_FN void refuse_message(const Endpoint& e, const Note& said, const Note& ours, const char* pieces) {
#if defined(__CUDACC__)
  (void)e, (void)said, (void)ours, (void)pieces;
  refuse("the sender's message is not the one that is received");
#else
  const auto share = [](const Note& of) {
    return std::to_string(of.bytes()) + " bytes, of a message that " + std::to_string(of.groups()) +
           " groups move";
  };
  const bool alike = said.bytes() == ours.bytes() && said.groups() == ours.groups();
  refuse("the sender's message is not the one that is received: over channel " + std::to_string(e.channel) +
         " rank " + std::to_string(e.peer) + " sends " + share(said) +
         (alike ? ", in other " + std::string(pieces) : "") + ", and rank " + std::to_string(e.self) +
         " receives " + share(ours) + "; give both the same length, " + pieces + " and number of blocks");
#endif
}

/// Checks the sender's note about a message, before its first tile is taken.
CHORALE_FN void check_note(const Group& group, const Endpoint& e, const Leg& leg, const Progress& at) {
  if (!group.leader()) return;
  const Note said(load_relaxed(&e.told->data_ready.note)), ours = at.note(leg, group);
  // The sender may be at a later message.
  if (said.of_message(ours) && said.word != ours.word) refuse_message(e, said, ours, "tiles");
}

template <class T, class Ops, class Hook, class X>
class Receiver {
 public:
  CHORALE_FN Receiver(const Group& group, const Endpoint& e, const Leg& message, const Hook& hook,
                      const Deadline& deadline, X* extra, int32_t send_peer)
      : group_(group),
        e_(e),
        leg_(typed<T>(message)),
        hook_(hook),
        deadline_(deadline),
        at_(e, leg_, load_relaxed(&e.local->cursor.received), is_block_hook<Hook>),
        ctx_(context(group, e, leg_, at_.tile_bytes, extra)) {
    check_fabric<Ops>(e);
    ctx_.peer = send_peer;
  }

  CHORALE_FN bool more() const { return at_.more(); }
  CHORALE_FN uint64_t tiles() const { return at_.tiles; }

  /// Receives the next tile.
  CHORALE_FN Stop step() {
    const uint64_t position = at_.position(), bytes = at_.bytes(leg_);
    const char* const region = Ops::land(e_, position);
    for (uint64_t done = 0; done < bytes; done += at_.part_bytes) {
      const uint64_t left = bytes - done, part = left < at_.part_bytes ? left : at_.part_bytes;
      const Stop stop = Ops::wait(group_, e_, position + units_of(done + part) * unit_bytes, deadline_);
      if (stop != Stop::none) return stop;
      if (CHORALE_CHECKED && at_.tile == 0 && done == 0) check_note(group_, e_, leg_, at_);
      locate(ctx_, e_, leg_, at_, region, done, part);
      consume<T>(group_, leg_, hook_, ctx_, at_.offset() + done, part, Mem(region + done));
    }
    const Stop stop = signal_and_advance<Ops>(
        group_, e_, at_.last(), &e_.local->cursor.received, at_.start, at_.end(),
        [&] { return Ops::signal_free(group_, e_, position + at_.slot, deadline_, !is_block_hook<Hook>); });
    if (stop == Stop::none) ++at_.tile;
    return stop;
  }

 private:
  const Group& group_;
  const Endpoint& e_;
  const Leg leg_;
  const Hook& hook_;
  const Deadline& deadline_;
  Progress at_;
  Ctx<X> ctx_;
};

}  // namespace detail

/// Sends this group's share to the peer of `e`. All threads of the group call it and get the same Stop. The
/// fabric `Ops` must match the link; see with_link(). Over Port the data has left this rank's memory only
/// after Port::drain(). T is the element type that travels. The data that hooks read must stay unchanged
/// until the call returns.
/// \param leg  the share, see share_of()
/// \param extra  is passed to the hook as Ctx::extra
template <class T, class Ops = Direct, class Produce = CopyProduce, class X = None>
CHORALE_FN Stop send_tiles(const Group& group, const Endpoint& e, const Leg& leg, const Produce& produce = {},
                           const Deadline& deadline = {}, X* extra = nullptr) {
  detail::Sender<T, Ops, Produce, X> sender(group, e, leg, produce, deadline, extra, e.peer);
  while (sender.more()) {
    const Stop stop = sender.step();
    if (stop != Stop::none) return stop;
  }
  return Stop::none;
}

/// Receives this group's share from the peer of `e`. When it returns, other threads of the group may read
/// what hooks have written.
template <class T, class Ops = Direct, class Consume = CopyConsume, class X = None>
CHORALE_FN Stop recv_tiles(const Group& group, const Endpoint& e, const Leg& leg, const Consume& consume = {},
                           const Deadline& deadline = {}, X* extra = nullptr) {
  detail::Receiver<T, Ops, Consume, X> receiver(group, e, leg, consume, deadline, extra, e.peer);
  while (receiver.more()) {
    const Stop stop = receiver.step();
    if (stop != Stop::none) return stop;
  }
  return Stop::none;
}

/// Sends to one peer and receives from another, or from the same. It sends tile s before it receives tile
/// s-1. So no group waits for room while its peers wait for it to receive. A ring of one slot can carry only
/// messages of one tile.
template <class T, class Out = Direct, class Produce = CopyProduce, class Consume = CopyConsume,
          class X = None, class In = Out>
CHORALE_FN Stop sendrecv_tiles(const Group& group, const Endpoint& to, const Endpoint& from, const Leg& send,
                               const Leg& recv, const Produce& produce = {}, const Consume& consume = {},
                               const Deadline& deadline = {}, X* extra = nullptr) {
  detail::Sender<T, Out, Produce, X> sender(group, to, send, produce, deadline, extra, from.peer);
  detail::Receiver<T, In, Consume, X> receiver(group, from, recv, consume, deadline, extra, to.peer);
  Stop stop = Stop::none;
  for (bool first = true; sender.more() || receiver.more(); first = false) {
    if (sender.more()) stop = sender.step();
    if (stop == Stop::none && receiver.more() && (!first || !sender.more())) stop = receiver.step();
    if (stop != Stop::none) return stop;
  }
  return Stop::none;
}

/// Receives from one peer, passes the data on to another, and consumes it, in one pass. A hook with forward()
/// changes the data that is passed on and consumed. Both rings must have slots of one size.
template <class T, class In = Direct, class Out = Direct, class Hook = CopyConsume, class X = None>
CHORALE_FN Stop forward_tiles(const Group& group, const Endpoint& from, const Endpoint& to, const Leg& leg,
                              const Hook& hook = {}, const Deadline& deadline = {}, X* extra = nullptr);

namespace detail {
/// Is a base class with a member named forward. If a hook has such a member too, the name is ambiguous in
/// HookBeside. That detects a forward() with a wrong signature, which would otherwise be ignored silently.
struct AnotherForward {
  int forward;
};
template <class Hook>
struct HookBeside : Hook, AnotherForward {};
template <class Hook, class = void>
inline constexpr bool names_forward = true;
template <class Hook>
inline constexpr bool names_forward<Hook, std::void_t<decltype(&HookBeside<Hook>::forward)>> = false;

/// Names the return type of a hook's forward() when it is called as hooks.hpp says.
template <class Hook, class V, class X>
using GivenByForward =
    decltype(std::declval<const Hook&>().forward(std::declval<const Ctx<X>&>(), std::declval<const V&>()));
template <class Hook, class V, class X, class = void>
inline constexpr bool can_forward = false;
template <class Hook, class V, class X>
inline constexpr bool can_forward<Hook, V, X, std::void_t<GivenByForward<Hook, V, X>>> =
    std::is_convertible_v<GivenByForward<Hook, V, X>, V>;

template <class Hook, class V, class X>
CHORALE_FN constexpr bool has_forward() {
  constexpr bool fits = can_forward<Hook, V, X>;
  if constexpr (std::is_final_v<Hook>) {
    return fits;  // a final class allows no derived class for the test
  } else {
    static_assert(fits || !names_forward<Hook>,
                  "a hook's forward() is: Pack<T, 16 / sizeof(T)> forward(const Ctx<X>&, const Pack<T, 16 / "
                  "sizeof(T)>&) const");
    return fits;
  }
}

/// Passes on one tile in forward_tiles().
template <class T, class Hook, class X>
CHORALE_FN void pass_on(const Group& group, const Leg& leg, const Hook& hook, const Ctx<X>& ctx,
                        uint64_t offset, uint64_t bytes, const Mem& from, const Mem& to) {
  static_assert(!is_block_hook<Hook>, "forward_tiles() takes value hooks");
  if constexpr (has_forward<Hook, Vector<T>, X>()) {
    const Ctx<X> here = in_values<T>(ctx, leg, offset);
    transfer(group, bytes, Forwarded<T, Hook, X>{from, hook, here},
             Tee<Mem, Consumed<T, Hook, X>>{to, Consumed<T, Hook, X>{hook, here}});
  } else if (std::is_same_v<Hook, CopyConsume> && !leg.out) {
    transfer(group, bytes, from, to);
  } else {
    const auto own = sink_of<T>(leg, hook, ctx, offset);
    transfer(group, bytes, from, Tee<Mem, std::decay_t<decltype(own)>>{to, own});
  }
}
}  // namespace detail

template <class T, class In, class Out, class Hook, class X>
CHORALE_FN Stop forward_tiles(const Group& group, const Endpoint& from, const Endpoint& to,
                              const Leg& message, const Hook& hook, const Deadline& deadline, X* extra) {
  if (from.slot_bytes() != to.slot_bytes()) refuse("forward_tiles() needs rings with slots of one size");
  detail::check_fabric<In>(from);
  detail::check_fabric<Out>(to);
  const Leg leg = detail::typed<T>(message);
  detail::Progress in(from, leg, load_relaxed(&from.local->cursor.received), false);
  detail::Progress out(to, leg, load_relaxed(&to.local->cursor.sent), false);
  Ctx<X> ctx = detail::context(group, from, leg, in.tile_bytes, extra);
  ctx.peer = to.peer;
  // This does what signal_and_advance() does, for both positions together.
  constexpr bool at_once = signals_at_once<In> && signals_at_once<Out>;
  const auto advance = [&] {
    if (!group.leader()) return;
    detail::end_message(to, &to.local->cursor.sent, out.start, out.end());
    detail::end_message(from, &from.local->cursor.received, in.start, in.end());
  };
  for (; in.more(); ++in.tile, ++out.tile) {
    const uint64_t bytes = in.bytes(leg);
    Stop stop = Stop::none;
    if (out.position() + out.slot > to.window) {
      stop = Out::wait_free(group, to, out.position() + out.slot - to.window, deadline);
    }
    const char* const region = In::land(from, in.position());
    char* const next = Out::stage(to, out.position());
    for (uint64_t done = 0; done < bytes && stop == Stop::none; done += in.part_bytes) {
      const uint64_t left = bytes - done, part = left < in.part_bytes ? left : in.part_bytes;
      const uint64_t upto = units_of(done + part) * unit_bytes;
      stop = In::wait(group, from, in.position() + upto, deadline);
      if (stop != Stop::none) break;
      const bool first = in.tile == 0 && done == 0;
      if (CHORALE_CHECKED && first) detail::check_note(group, from, leg, in);
      detail::locate(ctx, from, leg, in, region, done, part);
      detail::pass_on<T>(group, leg, hook, ctx, in.offset() + done, part, Mem(region + done),
                         Mem(next + done));
      if (at_once && in.last() && done + part == bytes) advance();
      stop = Out::signal(group, to, out.position() + done, out.position() + upto,
                         CHORALE_CHECKED && first ? out.note(leg, group).word : 0, deadline);
    }
    if (stop == Stop::none) stop = In::signal_free(group, from, in.position() + in.slot, deadline, true);
    if (stop != Stop::none) return stop;
    if (!at_once && in.last()) {
      advance();
      group.sync();
    }
  }
  return Stop::none;
}

}  // namespace chorale
