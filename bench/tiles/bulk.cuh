/// \file
/// Sends a message unchanged by bulk copies (sm_90's TMA), as a hook. One thread has the copy unit move
/// kilobytes through shared memory, without using registers for the data.
#pragma once

#include <chorale/device.hpp>
#include <cstdint>

namespace bench_tiles {

using chorale::Ctx;
using chorale::Group;
using chorale::TileOut;

namespace bulk {

// Each of these functions is one instruction. Addresses of shared memory have 32 bits.

CHORALE_FN void barrier_init(uint32_t barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}
CHORALE_FN void barrier_invalidate(uint32_t barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
/// Makes the only arrival of a phase. The phase ends when `bytes` bytes have arrived as well.
CHORALE_FN void barrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
/// Returns true if the phase of that parity has ended. It may wait for a while.
CHORALE_FN bool barrier_ended(uint32_t barrier, uint32_t parity) {
  uint32_t ended;
  asm volatile(
      "{\n"
      "  .reg .pred yes;\n"
      "  mbarrier.try_wait.parity.shared::cta.b64 yes, [%1], %2;\n"
      "  selp.u32 %0, 1, 0, yes;\n"
      "}"
      : "=r"(ended)
      : "r"(barrier), "r"(parity)
      : "memory");
  return ended != 0;
}
CHORALE_FN void load(uint32_t to, const char* from, uint32_t bytes, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
      : "memory");
}
/// Stores bytes from shared memory as a separate bulk group.
CHORALE_FN void store(char* to, uint32_t from, uint32_t bytes) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
      "r"(from), "r"(bytes)
      : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Waits until all stores of this thread except the last `Pending` have read their shared memory.
template <uint32_t Pending>
CHORALE_FN void stores_have_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}
/// Waits until all stores of this thread have written their memory. The thread then sees what they wrote.
CHORALE_FN void stores_have_landed() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
/// Orders this thread's earlier reads and writes before the copies that it starts.
CHORALE_FN void before_copies() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
}

constexpr uint32_t piece_bytes = 4096, stages = 8, loads_ahead = 5;

/// Copies bytes. One thread of a block calls it. Addresses and size are multiples of 16.
CHORALE_FN void copy(const char* from, char* to, uint64_t bytes) {
  __shared__ alignas(128) char room[stages][piece_bytes];
  __shared__ alignas(8) uint64_t barriers[stages];
  const auto stage_at = [&](uint64_t piece) {
    return uint32_t(__cvta_generic_to_shared(room[piece % stages]));
  };
  const auto barrier_at = [&](uint64_t piece) {
    return uint32_t(__cvta_generic_to_shared(&barriers[piece % stages]));
  };
  const auto bytes_of = [bytes](uint64_t piece) {
    const uint64_t left = bytes - piece * piece_bytes;
    return uint32_t(left < piece_bytes ? left : piece_bytes);
  };
  const auto begin = [&](uint64_t piece) {
    barrier_expect(barrier_at(piece), bytes_of(piece));
    load(stage_at(piece), from + piece * piece_bytes, bytes_of(piece), barrier_at(piece));
  };
  for (uint32_t stage = 0; stage < stages; ++stage) barrier_init(barrier_at(stage));
  before_copies();
  const uint64_t pieces = (bytes + piece_bytes - 1) / piece_bytes;
  for (uint64_t piece = 0; piece < loads_ahead && piece < pieces; ++piece) begin(piece);
  for (uint64_t piece = 0; piece < pieces; ++piece) {
    // This waits only for the thread's own copies. They arrive, unless the GPU is lost.
    while (!barrier_ended(barrier_at(piece), uint32_t(piece / stages) & 1)) {
    }
    store(to + piece * piece_bytes, stage_at(piece), bytes_of(piece));
    if (piece + loads_ahead >= pieces) continue;
    // The next load reuses the stage of the store that came `stages - loads_ahead` before this one.
    stores_have_read<stages - loads_ahead>();
    begin(piece + loads_ahead);
  }
  stores_have_landed();
  for (uint32_t stage = 0; stage < stages; ++stage) barrier_invalidate(barrier_at(stage));
}

}  // namespace bulk

/// Copies the message with groups that are a whole block. Addresses and sizes of messages are multiples of 16
/// bytes.
template <class T>
struct BulkCopyProduce {
  using block_hook = void;

  template <class X>
  CHORALE_FN void produce(const Ctx<X>& ctx, const Group& group, TileOut tile) const {
    const char* const from = static_cast<const char*>(ctx.in) + ctx.index * sizeof(T);
    if (group.scope != chorale::Scope::block || (reinterpret_cast<uint64_t>(from) | tile.bytes) % 16 != 0) {
      chorale::refuse("bulk copies need whole blocks and multiples of 16 bytes");
    }
    // The leader waits until the copies have landed, and then the leader signals.
    if (group.leader()) bulk::copy(from, tile.data, tile.bytes);
  }
};

}  // namespace bench_tiles
