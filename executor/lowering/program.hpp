/// \file
/// A device program is a plan bound to a message on one rank, in the form that thread blocks run. GPUs and
/// the CPU run the same program. This header is C++17, because host and device share it.
///
/// Each thread block of the plan has a list of steps. The lowering (lower.hpp) writes the list once: it runs
/// the operations on a machine that records. Steps contain addresses, so at run time a block looks up only
/// the numbers that differ from launch to launch. A pipeline stays a loop: `loop`, the steps of its body,
/// `repeat`.
///
/// A block's steps are in pages of one shape, because a GPU holds a page in shared memory while it runs it. A
/// loop never crosses the end of a page.
///
/// Counts that grow from launch to launch are beside the program (BlockState), and the block itself advances
/// them. A launch's arguments never change, so a CUDA graph may replay it.
#pragma once

#include <cstdint>

#include "chorale/device/packets.hpp"
#include "chorale/device/signal.hpp"
#include "published.hpp"
#include "trace.hpp"

namespace chorale::lowering {

enum class ProgramStepKind : uint8_t {
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
  repeat,          ///< ends the body: goes back to its first step until all turns are done
  copy,            ///< copies plain memory to all sinks
  unpack,          ///< copies packets to all sinks
  reduce,          ///< combines plain memory into all sinks
  reduce_packets,  ///< combines packets into all sinks, with plain memory at its place among them
  /// Combines plain or encoded memory into all sinks, or copies it if there is one source. `n` counts all
  /// sources, and `own` is Codec::packed().
  coded,
  // These move whole units of a switch channel by its multicast address, from one place to one place; see
  // multicast_steps.cuh.
  multicast_reduce,  ///< combines at the switch, into plain memory
  multicast_store,   ///< stores plain memory at all members
  multicast_pass,    ///< combines at the switch, and stores at all members
};

/// Describes one step of a program. Data steps have `bytes`, sources and sinks; other steps have `n` items.
struct alignas(16) ProgramStep {
  ProgramStepKind kind = ProgramStepKind::sync;
  uint8_t reduce_op = 0;
  uint8_t whole = 0;   ///< all sources and sinks are whole 16-byte units, aligned if the passed buffers are
  uint8_t passed = 0;  ///< 1: the passed input is among the places; 2: the passed output
  uint32_t op = 0;     ///< the operation in the plan's thread block
  uint64_t bytes = 0;
  uint16_t n = 0;  ///< the number of items or sources; `reduce` does not count the first source,
                   ///< `reduce_packets` counts packets
  uint16_t plain_sinks = 0, packet_sinks = 0;
  /// For `reduce_packets`, the plain source comes before packet `own` - 1. 0: there is none.
  uint16_t own = 0;
  uint16_t first_plain = 0;    ///< in the page's plain places: sources, then sinks
  uint16_t first_packets = 0;  ///< in the page's packet places: sources, then sinks
  uint16_t first_item = 0;
  /// Holds the number of steps from here on that are alike: they move the same number of bytes, and none
  /// touches memory that another one writes.
  uint16_t batch = 1;
};
static_assert(sizeof(ProgramStep) == 32);

/// Describes an item of a step without data.
union SyncItem {
  struct Post {
    Signal* at_peer;
  } post;
  struct Await {
    const Signal* mine;
    /// Counts the posts waited for, if several blocks wait on the channel. Null: BlockState's `slot` counts
    /// them.
    uint64_t* expected;
    uint32_t slot;
    uint32_t peer;
    uint32_t op;  ///< the operation in the plan's thread block; each item has one because adjacent steps are
                  ///< joined
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
    uint64_t steps;  ///< the number of steps in the body, without `loop` and `repeat`
  } repeat;
  uint64_t words[4] = {};
};
static_assert(sizeof(SyncItem) == 32);

/// Names a place in memory. settled() computes its address.
struct ProgramPlace {
  uint64_t at = 0;     ///< an address, or an offset in a passed buffer
  uint64_t even = 0;   ///< added in launches of even number, to get from one bank of scratch to the other
  uint64_t valid = 0;  ///< bytes that exist; packets: unused

  static constexpr uint64_t in = uint64_t{1} << 63, out = uint64_t{1} << 62;
  /// Marks a place in a peer's input or output. Each round takes another slice of it, so Launch::skip is
  /// added.
  static constexpr uint64_t sliced = uint64_t{1} << 61;
  /// Is `valid` of a place whose elements are encoded, all of which exist.
  static constexpr uint64_t encoded = uint64_t{1} << 62;

  CHORALE_HD char* settled(uint64_t epoch, char* passed_in, char* passed_out, uint64_t skip = 0,
                           const Gaps& gaps = {}) const {
    uint64_t address = at & ~(in | out | sliced);
    if (at & in)
      address = Gaps::add(address, gaps.part_bytes, gaps.in) + reinterpret_cast<uint64_t>(passed_in);
    if (at & out)
      address = Gaps::add(address, gaps.part_bytes, gaps.out) + reinterpret_cast<uint64_t>(passed_out);
    if (at & sliced) address += skip;
    if (epoch % 2 == 0) address += even;
    return reinterpret_cast<char*>(address);
  }
};

/// Describes the layout of every page of every block: a PageHeader, steps, items, plain places, packet places
/// and strides, in this order, each aligned to 16 bytes.
struct PageShape {
  uint32_t steps = 0, items = 0, plain = 0, packets = 0;  ///< the capacity of a page
  /// Counts the strides: one per place, or 0 if no place has one. A stride is the number of bytes by which a
  /// place advances from one turn of its loop to the next.
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
  uint32_t more = 0;  ///< not 0: the block has another page
  uint32_t reserved[2] = {};
};

/// Holds the state that a block keeps from launch to launch. The counts of the posts that it has waited for
/// follow it.
struct BlockState {
  uint64_t epoch = 0;    ///< the number of launches that have ended
  uint64_t stopped = 0;  ///< not 0: a launch has stopped before its end, and no other may run
  CHORALE_HD uint64_t* counts() { return reinterpret_cast<uint64_t*>(this + 1); }
};
static_assert(sizeof(BlockState) == 16);

}  // namespace chorale::lowering
