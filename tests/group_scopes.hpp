/// \file
/// Defines a kernel that walks the groups of every scope, on the CPU and on CUDA.
#pragma once

#include <cstdint>

#include "chorale/device/deadline.hpp"
#include "chorale/device/group.hpp"

namespace chorale::test {

/// Checks what must hold for a group of any scope. `room` has a word for each of its threads.
/// \param expect  expect(holds, line) records a failure if `holds` is false
template <class Expect>
CHORALE_FN void check_group(const Group& group, uint64_t* room, const Expect& expect) {
  for (uint32_t round = 0; round < 20; ++round) {
    // A sync() publishes what each thread wrote.
    store_relaxed(&room[group.rank], uint64_t(round * 10000 + group.rank));
    group.sync();
    for (uint32_t step = 0; step < group.size; step += 1 + group.size / 64) {
      const uint32_t rank = (group.rank + step) % group.size;
      expect(load_relaxed(&room[rank]) == round * 10000 + rank, __LINE__);
    }
    expect(group.broadcast(group.leader() ? round + 7 : 0u) == round + 7, __LINE__);
    expect(!group.all(group.rank != round % group.size), __LINE__);
    expect(group.all(true), __LINE__);
    expect(group.agree(group.rank + 1 == group.size ? Stop::aborted : Stop::none) == Stop::aborted, __LINE__);
    expect(group.agree(Stop::none) == Stop::none, __LINE__);
    group.sync();
  }
}

/// Visits with every thread all groups that it is in, by the names that both backends have.
template <class Expect>
struct EveryScope {
  uint64_t* room;  ///< a word for each thread of the grid
  Expect expect;

  CHORALE_FN void operator()(const Group& block) const {
    expect(block.id == block.block && block.scope == Scope::block, __LINE__);
    look(block, block, Scope::block);
    const Group warp = warp_group(block);
    look(block, warp, Scope::warp);
    look(block, thread_group(block), Scope::thread);
    // The groups have several warps or one.
    for (uint32_t parts = 1; parts <= 8; parts *= 2) {
      if (block.size % (parts * warp.size) != 0) continue;
      look(block, multiwarp_group(block, block.size / parts), Scope::multiwarp);
    }
    // Within a part of a split, groups are renumbered like blocks. `room` is still the grid's.
    const Split half = block.split(2);
    const uint32_t parts = block.size % (2 * warp.size) == 0 ? 2 : 1;
    const Group part = multiwarp_group(half.group, block.size / parts);
    const uint32_t here = block.rank / part.size;
    expect(part.id == half.group.id * parts + here && part.count == half.group.count * parts, __LINE__);
    check_group(part, room + (block.id * parts + here) * part.size, expect);
    block.sync();
    look(block, cluster_group(block), Scope::cluster);
  }

 private:
  /// Checks the groups of one scope, which divide the grid's threads among them in order.
  CHORALE_FN void look(const Group& block, const Group& group, Scope scope) const {
    const uint32_t threads = block.count * block.size, thread = block.id * block.size + block.rank;
    expect(group.scope == scope && group.block == block.block, __LINE__);
    expect(group.id == thread / group.size && group.rank == thread % group.size, __LINE__);
    expect(group.count == threads / group.size && threads % group.size == 0, __LINE__);
    check_group(group, room + group.id * group.size, expect);
    block.sync();  // the next groups are different, and write the same words
  }
};

}  // namespace chorale::test
