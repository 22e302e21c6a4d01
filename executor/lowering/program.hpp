/// \file
/// A device program is what a plan comes to when it is bound to a message on one rank. GPUs and the CPU run
/// the same one. C++17, since host and device share it.
///
/// Each thread block of the plan has a list of steps. The lowering (lower.hpp) writes it once, by running the
/// operations on a machine that records. Steps name addresses, and nothing is left to look up but the numbers
/// that differ from launch to launch. A pipeline stays a loop: `loop`, the steps of its body, `repeat`.
///
/// A block's steps lie in pages of one shape, since a GPU holds a page in shared memory while it runs it. A
/// loop never crosses the end of a page.
///
/// Counts that grow from launch to launch lie beside the program (BlockState), and the block itself advances
/// them. A launch's arguments never change, so a CUDA graph may replay it.
#pragma once

#include <cstdint>

#include "chorale/device/packets.hpp"
#include "chorale/device/signal.hpp"
#include "trace.hpp"

namespace chorale::lowering {

enum class StepKind : uint8_t {
  sync,
  post,
  post_relaxed,
  await,
  await_relaxed,
  drain,
  acquire,
  release,
  barrier,
  push,
  loop,            ///< begins the body of a loop
  repeat,          ///< ends it: goes back to its first step until all turns are done
  copy,            ///< from plain memory to all sinks
  unpack,          ///< from packets to all sinks
  reduce,          ///< combines plain memory into all sinks
  reduce_packets,  ///< combines packets, and plain memory in its place among them, into all sinks
  // These move whole units of a switch channel by its multicast address, from one place to one place, see
  // multicast_steps.cuh.
  multicast_reduce,  ///< combines at the switch, to plain memory
  multicast_store,   ///< from plain memory to all members
  multicast_pass,    ///< combines at the switch, to all members
};

/// A step of a program. Data steps have `bytes`, sources and sinks; others have `n` items.
struct alignas(16) ProgramStep {
  StepKind kind = StepKind::sync;
  uint8_t reduce_op = 0;
  uint8_t whole = 0;   ///< all sources and sinks are whole 16-byte units, aligned if what is passed is
  uint8_t passed = 0;  ///< 1: the passed input is among them; 2: the passed output
  uint32_t op = 0;     ///< in the plan's thread block
  uint64_t bytes = 0;
  uint16_t n = 0;  ///< items; sources, but in `reduce` without the first; in `reduce_packets` packets
  uint16_t plain_sinks = 0, packet_sinks = 0;
  uint16_t own = 0;  ///< in `reduce_packets`: the plain source comes before packet `own` - 1; 0: it has none
  uint16_t first_plain = 0;    ///< in the page's plain places: sources, then sinks
  uint16_t first_packets = 0;  ///< in the page's packet places: sources, then sinks
  uint16_t first_item = 0;
  /// The number of steps from here on that are alike: all move as many bytes, and none touches what another
  /// writes.
  uint16_t batch = 1;
};
static_assert(sizeof(ProgramStep) == 32);

/// An item that a step without data works on.
union SyncItem {
  struct Post {
    Signal* at_peer;
  } post;
  struct Await {
    const Signal* mine;
    /// Counts the posts waited for, if several blocks wait on the channel; null: BlockState's `slot` does.
    uint64_t* expected;
    uint32_t slot;
    uint32_t peer;
    uint32_t op;  ///< in the plan's thread block; each item has it because adjacent steps are joined
    uint32_t reserved;
  } await;
  struct Drain {
    const uint64_t* pushed;
    const Signal* completed;
  } drain;
  struct Permit {
    Semaphore* semaphore;
  } permit;
  struct Barrier {
    Signal* word;
    uint64_t participants;
  } barrier;
  struct Push {
    uint64_t* pushed;
    uint32_t channel;
    uint32_t signal;
    uint32_t from, to;  ///< positions in the page's plain places; ~0: no data
  } push;
  struct Repeat {
    uint64_t turns;
    uint64_t steps;  ///< of the body, without `loop` and `repeat`
  } repeat;
  uint64_t words[4] = {};
};
static_assert(sizeof(SyncItem) == 32);

/// A place in memory. settled() makes an address of it.
struct ProgramPlace {
  uint64_t at = 0;     ///< an address, or an offset in what is passed
  uint64_t even = 0;   ///< added in launches of even number, to get from one bank of scratch to the other
  uint64_t valid = 0;  ///< bytes that exist; packets: unused

  static constexpr uint64_t in = uint64_t{1} << 63, out = uint64_t{1} << 62;
  /// Marks a place in a peer's input or output, of which each round takes another slice: Launch::skip is
  /// added.
  static constexpr uint64_t sliced = uint64_t{1} << 61;

  CHORALE_HD char* settled(uint64_t epoch, char* passed_in, char* passed_out, uint64_t skip = 0) const {
    uint64_t address = at & ~(in | out | sliced);
    if (at & in) address += reinterpret_cast<uint64_t>(passed_in);
    if (at & out) address += reinterpret_cast<uint64_t>(passed_out);
    if (at & sliced) address += skip;
    if (epoch % 2 == 0) address += even;
    return reinterpret_cast<char*>(address);
  }
};

/// The layout of every page of every block: a PageHeader, steps, items, plain places, packet places, strides,
/// in this order, and each aligned to 16 bytes.
struct PageShape {
  uint32_t steps = 0, items = 0, plain = 0, packets = 0;  ///< the numbers that there is room for
  /// 0, or one for each place: how many bytes it moves on from one turn of its loop to the next.
  uint32_t strides = 0;

  CHORALE_HD uint32_t items_at() const { return 16 + steps * uint32_t(sizeof(ProgramStep)); }
  CHORALE_HD uint32_t plain_at() const { return items_at() + items * uint32_t(sizeof(SyncItem)); }
  CHORALE_HD uint32_t packets_at() const { return plain_at() + plain * uint32_t(sizeof(ProgramPlace)); }
  CHORALE_HD uint32_t strides_at() const { return packets_at() + packets * uint32_t(sizeof(ProgramPlace)); }
  CHORALE_HD uint32_t bytes() const {
    return (strides_at() + strides * uint32_t(sizeof(uint64_t)) + 15) / 16 * 16;
  }
  /// In shared memory the settled places follow the page.
  CHORALE_HD uint32_t settled_plain_at() const { return bytes(); }
  CHORALE_HD uint32_t settled_packets_at() const { return bytes() + plain * 16; }
  CHORALE_HD uint32_t shared_bytes() const { return settled_packets_at() + packets * 32; }
};

struct alignas(16) PageHeader {
  uint32_t steps = 0;
  uint32_t more = 0;  ///< not 0: the block has a next page
  uint32_t reserved[2] = {};
};

/// The state that a block keeps from launch to launch. Counts of the posts that it has waited for follow.
struct BlockState {
  uint64_t epoch = 0;    ///< launches that have ended
  uint64_t stopped = 0;  ///< not 0: a launch has stopped before its end, and no further one may run
  CHORALE_HD uint64_t* counts() { return reinterpret_cast<uint64_t*>(this + 1); }
};
static_assert(sizeof(BlockState) == 16);

}  // namespace chorale::lowering
