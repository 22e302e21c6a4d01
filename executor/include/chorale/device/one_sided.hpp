#pragma once
// With these functions kernels access the windows of all ranks: put, get, signals, barriers. The owner of a
// window takes no part in a put or a get. The host makes the WindowView (chorale/one_sided_window.hpp). All
// threads of a group call each function, with the same arguments.

#include <cstdint>

#include "chorale/device/deadline.hpp"
#include "chorale/device/engine.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/signal.hpp"

namespace chorale {

/// Holds one rank's view of the windows of all ranks, in memory that kernels read.
struct WindowView {
  char* const* base = nullptr;         ///< windows by rank; null if there is none or it is not mapped here
  const uint64_t* bytes = nullptr;     ///< sizes of the windows, by rank
  Signal* const* signals = nullptr;    ///< arrays by rank; within an array by sender, then by id
  Barrier* const* barriers = nullptr;  ///< arrays by rank; within an array by id
  int32_t self = -1, ranks = 0;        ///< this rank, and the number of ranks
  uint32_t signal_count = 0, barrier_count = 0;  ///< signals per rank and sender; barriers per rank

  CHORALE_FN Signal* signal_at(int32_t owner, int32_t sender, uint32_t id) const {
    if (uint32_t(owner) >= uint32_t(ranks) || uint32_t(sender) >= uint32_t(ranks))
      refuse("there is no such peer");
    if (id >= signal_count) refuse("the window has no such signal");
    return signals[owner] + uint64_t(sender) * signal_count + id;
  }
  CHORALE_FN Barrier* barrier_at(int32_t owner, uint32_t id) const {
    if (uint32_t(owner) >= uint32_t(ranks)) refuse("there is no such peer");
    if (id >= barrier_count) refuse("the window has no such barrier");
    return barriers[owner] + id;
  }
};

namespace detail {
/// Adds `addend` to word_of(peer) for each rank, beginning `first` ranks after this one. The additions come
/// after everything that the group did. Each thread serves other ranks, so the posts run in parallel.
template <class WordOf>
CHORALE_FN void post_to_ranks(const Group& group, const WindowView& view, uint32_t first, uint64_t addend,
                              const WordOf& word_of) {
  group.sync();
  for (uint32_t step = first + group.rank; step < uint32_t(view.ranks); step += group.size) {
    group.step();
    post_release(word_of((view.self + int32_t(step)) % view.ranks), addend);
  }
}
}  // namespace detail

/// Returns the address here of `offset` bytes into a peer's window, or null if the peer has none.
CHORALE_FN char* address(const WindowView& view, int32_t peer, uint64_t offset) {
  if (uint32_t(peer) >= uint32_t(view.ranks)) refuse("there is no such peer");
  return view.base[peer] && offset <= view.bytes[peer] ? view.base[peer] + offset : nullptr;
}

/// Copies `bytes` bytes from `source` to the peer's window, `offset` bytes from its beginning. The peer may
/// read the data only after a later signal. Refuses a range outside the window.
CHORALE_FN void put(const Group& group, const WindowView& view, int32_t peer, uint64_t offset,
                    const void* source, uint64_t bytes) {
  char* const to = address(view, peer, offset);
  if (!to || bytes > view.bytes[peer] - offset) refuse("put(): the range is outside the peer's window");
  transfer(group, bytes, Mem(source), Mem(to));
}

/// Copies `bytes` bytes from the peer's window, `offset` bytes from its beginning, to `to`. Wait first for a
/// signal that the owner sends after it has written the data. The owner may overwrite the data after a later
/// signal of this group. Refuses a range outside the window.
CHORALE_FN void get(const Group& group, const WindowView& view, int32_t peer, uint64_t offset, void* to,
                    uint64_t bytes) {
  const char* const from = address(view, peer, offset);
  if (!from || bytes > view.bytes[peer] - offset) refuse("get(): the range is outside the peer's window");
  transfer(group, bytes, Mem(from), Mem(to));
}

/// Adds `value` to signal `id` that the peer has for this rank, after everything that the group did.
CHORALE_FN void signal_peer(const Group& group, const WindowView& view, int32_t peer, uint32_t id,
                            uint64_t value = 1) {
  signal_add(group, view.signal_at(peer, view.self, id), value);
}
/// Adds `value` to signal `id` that every rank, including this one, has for this rank. Comes after everything
/// that the group did.
CHORALE_FN void signal_all(const Group& group, const WindowView& view, uint32_t id, uint64_t value = 1) {
  detail::post_to_ranks(group, view, 0, value,
                        [&](int32_t peer) { return &view.signal_at(peer, view.self, id)->value; });
}

/// Does put(), then signal_peer().
CHORALE_FN void put_signal(const Group& group, const WindowView& view, int32_t peer, uint64_t offset,
                           const void* source, uint64_t bytes, uint32_t id, uint64_t value = 1) {
  put(group, view, peer, offset, source, bytes);
  signal_peer(group, view, peer, id, value);
}

/// Waits until signal `id` that this rank has for `peer` compares to `value` as `cmp` says. The signal is the
/// sum of all that `peer` has added. Kernels never reset it, so a kernel that runs again must wait for a
/// larger value.
CHORALE_FN Stop wait_signal_from(const Group& group, const WindowView& view, int32_t peer, uint32_t id,
                                 Cmp cmp, uint64_t value, const Deadline& deadline = {}) {
  return wait_until(group, view.signal_at(view.self, peer, id), cmp, value, deadline);
}

/// Returns in every thread the sum that `peer` has added to signal `id` here so far. Synchronises the group.
CHORALE_FN uint64_t read_signal(const Group& group, const WindowView& view, int32_t peer, uint32_t id) {
  const Signal* const signal = view.signal_at(view.self, peer, id);
  return group.broadcast(group.leader() ? load_acquire(&signal->value) : uint64_t{0});
}

/// Arrives at barrier `id` of a peer, after everything that the group did.
CHORALE_FN void arrive_at(const Group& group, const WindowView& view, int32_t peer, uint32_t id) {
  arrive(group, view.barrier_at(peer, id));
}
/// Arrives at barrier `id` of every other rank, in parallel.
CHORALE_FN void arrive_all(const Group& group, const WindowView& view, uint32_t id) {
  detail::post_to_ranks(group, view, 1, 1,
                        [&](int32_t peer) { return &view.barrier_at(peer, id)->arrived.value; });
}
/// Waits for one more arrival of every other rank at this rank's barrier `id`. Only one group may wait at a
/// barrier.
CHORALE_FN Stop wait_all(const Group& group, const WindowView& view, uint32_t id,
                         const Deadline& deadline = {}) {
  return wait(group, view.barrier_at(view.self, id), deadline, uint64_t(view.ranks) - 1);
}

/// Waits until a group of each rank has called it with this id. Only one group per rank may use an id.
CHORALE_FN Stop barrier(const Group& group, const WindowView& view, uint32_t id,
                        const Deadline& deadline = {}) {
  arrive_all(group, view, id);
  return wait_all(group, view, id, deadline);
}

}  // namespace chorale
