// These functions of the device library have C names, so that kernels in other languages can call them when
// they are linked with the bitcode. All threads of a block call each function, with the same arguments.
// Addresses are 64-bit numbers. A result of type int32_t is a Stop: 0, or the reason why a wait ended. After
// a reason the kernel makes no more calls but chorale_stop(), and ends.

#include "chorale/device/ring_slots.hpp"
#include "chorale/kernel_context.hpp"

using namespace chorale;
using chorale::detail::Progress;

namespace {

__device__ const KernelContext& context_at(uint64_t address) {
  return *reinterpret_cast<const KernelContext*>(address);
}

/// Returns the progress of a block's share of `bytes` bytes that is at tile `tile`.
__device__ Progress progress(const Endpoint& e, uint64_t position, uint64_t bytes, uint64_t tile) {
  Leg leg;
  leg.bytes = bytes;
  Progress at(e, leg, position, true);
  at.tile = tile;
  return at;
}
__device__ uint64_t bytes_of_tile(const Progress& at, uint64_t bytes) {
  Leg leg;
  leg.bytes = bytes;
  return at.bytes(leg);
}
__device__ const Endpoint& link_to(const KernelContext& context, int32_t peer, const Group& block) {
  return context.table.at(peer, block.id);
}

}  // namespace

extern "C" {

__device__ int32_t chorale_rank(uint64_t context) { return int32_t(context_at(context).rank); }
__device__ int32_t chorale_ranks(uint64_t context) {
  const KernelContext& of = context_at(context);
  return of.table.ranks != 0 ? of.table.ranks : of.window.ranks;
}

/// Copies bytes to a peer's window, or from it.
__device__ int32_t chorale_put(uint64_t context, int32_t peer, uint64_t offset, uint64_t source,
                               uint64_t bytes) {
  put(block_group(), context_at(context).window, peer, offset, reinterpret_cast<const void*>(source), bytes);
  return 0;
}
__device__ int32_t chorale_get(uint64_t context, int32_t peer, uint64_t offset, uint64_t to, uint64_t bytes) {
  get(block_group(), context_at(context).window, peer, offset, reinterpret_cast<void*>(to), bytes);
  return 0;
}

/// Adds to a signal of a peer, after everything that the block did.
__device__ int32_t chorale_signal(uint64_t context, int32_t peer, uint32_t id, uint64_t value) {
  signal_peer(block_group(), context_at(context).window, peer, id, value);
  return 0;
}
/// Waits until the sum of what a peer has added to a signal is at least `value`.
__device__ int32_t chorale_wait(uint64_t context, int32_t peer, uint32_t id, uint64_t value) {
  const KernelContext& of = context_at(context);
  return int32_t(wait_signal_from(block_group(), of.window, peer, id, Cmp::ge, value, of.deadline));
}
/// Waits until a block of each rank has called it with this id.
__device__ int32_t chorale_barrier(uint64_t context, uint32_t id) {
  const KernelContext& of = context_at(context);
  return int32_t(barrier(block_group(), of.window, id, of.deadline));
}

/// Returns the bytes of a slot of the ring to a peer, which is the longest tile.
__device__ uint64_t chorale_tile_bytes(uint64_t context, int32_t peer) {
  return link_to(context_at(context), peer, block_group()).slot_bytes();
}

/// Waits until tile `tile` of a message of `bytes` bytes may be written, and returns the address for it; 0 if
/// the wait ended. The block with the same number receives the message at the peer.
__device__ uint64_t chorale_send_slot(uint64_t context, int32_t peer, uint64_t bytes, uint64_t tile) {
  const KernelContext& of = context_at(context);
  const Group block = block_group();
  const Endpoint& e = link_to(of, peer, block);
  const Progress at = progress(e, load_relaxed(&e.local->cursor.sent), bytes, tile);
  const Stop stop = detail::await_free_slot(block, e, at, of.deadline);
  return stop != Stop::none ? 0 : reinterpret_cast<uint64_t>(detail::staged_slot(e, at));
}
/// Sends the tile whose slot the block has written.
__device__ int32_t chorale_send(uint64_t context, int32_t peer, uint64_t bytes, uint64_t tile) {
  const KernelContext& of = context_at(context);
  const Group block = block_group();
  const Endpoint& e = link_to(of, peer, block);
  const Progress at = progress(e, load_relaxed(&e.local->cursor.sent), bytes, tile);
  block.sync();  // all threads have read the position before the last tile advances it
  const uint64_t note = CHORALE_CHECKED && tile == 0 ? [&] {
    Leg leg;
    leg.bytes = bytes;
    return at.note(leg, block).word;
  }() : 0;
  Stop stop = detail::signal_slot(block, e, at, bytes_of_tile(at, bytes), at.last(), note, of.deadline);
  if (stop == Stop::none && at.last()) stop = detail::drain_link(block, e, of.deadline);
  return int32_t(stop);
}

/// Waits for tile `tile` of a message of `bytes` bytes, and returns its address; 0 if the wait ended.
__device__ uint64_t chorale_recv_slot(uint64_t context, int32_t peer, uint64_t bytes, uint64_t tile) {
  const KernelContext& of = context_at(context);
  const Group block = block_group();
  const Endpoint& e = link_to(of, peer, block);
  const Progress at = progress(e, load_relaxed(&e.local->cursor.received), bytes, tile);
  const Stop stop = detail::await_slot(block, e, at, bytes_of_tile(at, bytes), of.deadline);
  return stop != Stop::none ? 0 : reinterpret_cast<uint64_t>(detail::landed_slot(e, at));
}
/// Frees the slot of a tile that the block has read.
__device__ int32_t chorale_recv(uint64_t context, int32_t peer, uint64_t bytes, uint64_t tile) {
  const KernelContext& of = context_at(context);
  const Group block = block_group();
  const Endpoint& e = link_to(of, peer, block);
  const Progress at = progress(e, load_relaxed(&e.local->cursor.received), bytes, tile);
  block.sync();
  return int32_t(detail::free_slot(block, e, at, at.last(), false, of.deadline));
}

/// Returns why a wait of this kernel has ended: because the world has stopped, or else because its time was
/// over.
__device__ int32_t chorale_why(uint64_t context) {
  const Deadline& of = context_at(context).deadline;
  const uint32_t stop = of.shared ? load_acquire(&of.shared->stop) : 0;
  return int32_t(stop != 0 ? stop : uint32_t(Stop::timed_out));
}

/// Tells all ranks that this kernel ends for a reason.
__device__ int32_t chorale_stop(uint64_t context, int32_t stop) {
  const KernelContext& of = context_at(context);
  if (stop != 0 && block_group().leader() && of.deadline.shared) {
    raise_stop(of.deadline.shared, Stop(stop), of.rank);
  }
  return stop;
}

}  // extern "C"
