#pragma once
// This file declares groups, and defines what is the same on the CPU and on CUDA. Include group.hpp, which
// also defines the rest.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "chorale/device/atomics.hpp"
#include "chorale/device/divide.hpp"
#include "chorale/device/macros.hpp"

#if !defined(__CUDACC__)
#include <cassert>
#include <stdexcept>
#include <string>
#include <thread>
#endif

namespace chorale {

/// Says why a wait ended; `none` means that its condition holds. If threads disagree, the larger value wins.
enum class Stop : uint32_t { none = 0, timed_out, aborted, deadlock, peer_lost };

/// Says what a group consists of, which determines how it synchronises.
enum class Scope : uint8_t { thread, warp, multiwarp, block, cluster };

struct HostBlock;

#if !defined(__CUDACC__)
/// Lets one thread of a CPU block wait for others. Such a thread is a fiber, or the only thread of its block.
/// The code that runs the block implements this interface.
struct HostBlock {
  virtual ~HostBlock() = default;

  /// Parks this thread until ready(state) holds or the world stops. It may return earlier, so the caller
  /// checks again. `ready` neither waits nor changes anything, and another thread may call it.
  virtual void park(bool (*ready)(const void*), const void* state) = 0;

  /// Waits until all threads of the block have called it, or the world has stopped. Writes before the call
  /// are visible to all of them after it.
  virtual void sync() = 0;

  /// Lets a deterministic scheduler switch threads. Called before accesses that peers can see.
  virtual void step() = 0;

  /// Returns why the world stopped; `none` while it runs.
  virtual Stop stopped() = 0;

  /// Returns the HostBlock of this thread's group of `threads` neighbours, for blocks of several threads; see
  /// multiwarp_group().
  virtual HostBlock* part(uint32_t threads) {
    (void)threads;
    return nullptr;
  }

  /// Points to two words through which Group passes a value among the block's threads, between calls of
  /// sync(). If each thread has its own HostBlock, all of them point to the same words.
  uint64_t* cell = own_cell;
  uint64_t own_cell[2] = {0, 0};
};
#endif

/// Ends a kernel that was called wrongly and would otherwise hang a peer or corrupt its memory. On CUDA it
/// traps. On the CPU it throws std::logic_error, which stops the world.
CHORALE_FN void refuse(const char* why) {
#if defined(__CUDACC__)
  (void)why;
  __trap();
#else
  throw std::logic_error(why);
#endif
}
#if !defined(__CUDACC__)
inline void refuse(const std::string& why) { throw std::logic_error(why); }
#endif

struct Split;

/// Describes a group of threads from the view of one of its threads. Copies name the same group. All threads
/// of a group must call a function that takes it, with the same arguments, unless the function says
/// otherwise.
struct Group {
  uint32_t rank = 0;   ///< this thread's number in the group, 0 .. size-1
  uint32_t size = 1;   ///< the number of threads in the group
  uint32_t id = 0;     ///< this group's number among those that share the work, 0 .. count-1; a split
                       ///< renumbers it
  uint32_t count = 1;  ///< the number of groups that share the work
  uint32_t block = 0;  ///< the thread block that it runs in; a split does not change it
  Scope scope = Scope::thread;
  uint32_t barrier = 0;       ///< CUDA: the named barrier of a block (0) or multiwarp group (1..15)
  HostBlock* host = nullptr;  ///< CPU only; null: one thread, which yields when it must wait

  CHORALE_FN bool leader() const { return rank == 0; }

  /// Waits until all threads of the group have called it, and orders their memory accesses.
  CHORALE_FN void sync() const;

  /// Pauses briefly within a wait, after check number `spin` has failed. Called by one thread.
  CHORALE_FN void pause(uint32_t spin) const;

  /// Yields until ready() may hold. The caller must check it again. Called by one thread. On CUDA it is
  /// pause().
  template <class Ready>
  CHORALE_FN void park(const Ready& ready, uint32_t spin) const;

  /// Lets a deterministic scheduler switch threads. Called by one thread. CUDA: does nothing.
  CHORALE_FN void step() const;

  /// Returns why the world stopped, as far as this thread's scheduler knows. Called by one thread; CPU only.
  CHORALE_FN Stop stopped() const;

  /// Returns the leader's value in every thread. T is trivially copyable and at most 16 bytes. Synchronises.
  template <class T>
  CHORALE_FN T broadcast(T value) const;

  /// Returns true if `yes` is true in every thread; the result is the same in all threads. Synchronises.
  CHORALE_FN bool all(bool yes) const;

  /// Returns the largest of the threads' reasons to stop, the same in every thread. Synchronises.
  CHORALE_FN Stop agree(Stop mine) const;

  /// Divides the `count` groups into `parts` runs of neighbours whose sizes differ by at most one. It moves
  /// no thread. With more parts than groups, some parts have no group. All splits refuse 0 parts.
  CHORALE_FN Split split(uint32_t parts) const;

  /// Divides the groups round-robin: group g is in part g % parts.
  CHORALE_FN Split split_interleaved(uint32_t parts) const;

  /// Divides the groups into runs of neighbours. A part gets about count * weights[part] / (sum of all
  /// weights) groups. Refuses weights that are all 0.
  CHORALE_FN Split split_weighted(const uint32_t* weights, uint32_t parts) const;

  /// Returns the calling thread's warp of a block or multiwarp group. The warps share this group's work. CPU:
  /// each thread is a warp. CUDA: refuses a group that is not whole warps.
  CHORALE_FN Group warps() const;

  /// Calls f(item) for this group's contiguous part of 0 .. items-1. All threads of the group get the same
  /// items.
  template <class F>
  CHORALE_FN void each_contiguous(uint64_t items, F&& f) const {
    const detail::EvenParts parts(items, count);
    const uint64_t first = parts.first(id), last = first + parts.size(id);
    for (uint64_t item = first; item < last; ++item) f(item);
  }

  /// Calls f(item) for items id, id + count, ... below `items`. All threads of the group get the same items.
  template <class F>
  CHORALE_FN void each_strided(uint64_t items, F&& f) const {
    for (uint64_t item = id; item < items; item += count) f(item);
  }
};

/// Says which part of a split this group belongs to, and holds the group as it is numbered in that part.
struct Split {
  uint32_t part;
  Group group;
};

CHORALE_FN Split Group::split(uint32_t parts) const {
  if (parts == 0) refuse("a group is split into 0 parts");
  // The first `more` parts have base + 1 groups.
  const uint32_t base = count / parts, more = count % parts;
  const uint32_t large = more * (base + 1);
  Split result{0, *this};
  if (id < large) {
    result.part = id / (base + 1);
    result.group.id = id % (base + 1);
    result.group.count = base + 1;
  } else {
    result.part = more + (id - large) / base;
    result.group.id = (id - large) % base;
    result.group.count = base;
  }
  return result;
}

CHORALE_FN Split Group::split_interleaved(uint32_t parts) const {
  if (parts == 0) refuse("a group is split into 0 parts");
  Split result{id % parts, *this};
  result.group.id = id / parts;
  result.group.count = count / parts + (result.part < count % parts ? 1 : 0);
  return result;
}

CHORALE_FN Split Group::split_weighted(const uint32_t* weights, uint32_t parts) const {
  uint64_t total = 0;
  for (uint32_t part = 0; part < parts; ++part) total += weights[part];
  if (total == 0) refuse("a group is split by weights that are all 0");
  Split result{0, *this};
  uint64_t before = 0;
  for (uint32_t part = 0; part < parts; ++part) {
    const uint64_t begin = before * count / total;
    before += weights[part];
    const uint64_t end = part + 1 == parts ? count : before * count / total;
    if (id >= begin && id < end) {
      result.part = part;
      result.group.id = uint32_t(id - begin);
      result.group.count = uint32_t(end - begin);
    }
  }
  return result;
}

CHORALE_FN Stop Group::agree(Stop mine) const {
  if (all(mine == Stop::none)) return Stop::none;
  for (uint32_t reason = uint32_t(Stop::peer_lost); reason > uint32_t(Stop::timed_out); --reason) {
    if (!all(mine != Stop(reason))) return Stop(reason);
  }
  return Stop::timed_out;
}

// The functions below return groups that are parts of a block or contain it. Their ids follow from the
// block's id. So they share the work of all blocks, or after a split the work of the blocks in one part.

/// Returns the calling thread as a group of one.
CHORALE_FN Group thread_group(const Group& block) {
  Group thread = block;
  thread.rank = 0;
  thread.size = 1;
  thread.id = block.id * block.size + block.rank;
  thread.count = block.count * block.size;
  thread.scope = Scope::thread;
  return thread;
}

/// Returns the calling thread's warp. CUDA: the block is a multiple of 32 threads.
CHORALE_FN Group warp_group(const Group& block) { return block.warps(); }

/// Returns the calling thread's run of `threads` neighbours. The runs divide the block. CUDA: `threads` is a
/// multiple of 32, and a block has at most 15 runs, which use the named barriers 1 to 15. So only one size of
/// runs may be in use at a time, also on the CPU. Refuses a size that does not divide the block, and a group
/// that is not a block.
CHORALE_FN Group multiwarp_group(const Group& block, uint32_t threads);

/// Returns the blocks of the calling thread's cluster as one group. The launch sets the number of blocks in a
/// cluster: one by default, and always one on the CPU. CUDA: sm_90 and later. Refuses blocks that a split has
/// renumbered, because the blocks of a cluster may be in different parts.
CHORALE_FN Group cluster_group(const Group& block);

namespace detail {
CHORALE_FN void check_cluster(const Group& block) {
  if (block.scope != Scope::block || block.id != block.block) {
    refuse("a cluster is made of blocks as they were launched, not of parts of a split");
  }
}
}  // namespace detail

}  // namespace chorale
