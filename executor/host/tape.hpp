/// \file
/// A host schedule on one rank as a flat list of operations with addresses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/host/concrete.hpp"
#include "chorale/schedule.hpp"
#include "copies.hpp"
#include "ways.hpp"

namespace chorale::hostrun {

/// A flag of Concrete, or one that the executor adds for itself.
struct FlagUse {
  uint32_t poster = 0, taker = 0;
  std::string name;
};

/// A schedule for all ranks, as steps without addresses.
struct Unrolled {
  host::Concrete concrete;              ///< movers are expanded, barriers are flags
  std::vector<bool> reached;            ///< by tensor: peers read or write it
  std::vector<FlagUse> flags;           ///< at the positions of Concrete::flags
  std::vector<uint32_t> place_of_flag;  ///< by flag: its position among those of its taker
  uint32_t flags_per_rank = 0;          ///< the most that one rank takes
  Ways ways;
};

/// Every step is one that lanes can do: puts, gets, carries, calls and launches, and flags for what ranks
/// tell each other.
/// \param most_blocks  of a transfer that is carried
/// \throws UsageError for steps that have no realisation, and for flags that are not binary
Unrolled unroll(const host::Schedule&, host::Concrete expanded, uint32_t most_blocks);

/// Where things are, as one rank addresses them.
struct Memory {
  std::vector<std::vector<char*>> tensors;  ///< [rank][tensor]; null for those of peers that nobody reaches
  std::vector<uint32_t*> flags;             ///< by flag, at its taker; null where this rank has no part in it
};

/// One operation.
struct Action {
  /// Those of expanded schedules only: copy, fill, call, launch, after, mark, post, take, put, get, carry.
  host::StepKind kind = host::StepKind::mark;
  uint32_t lane = 0;
  const host::Step* step = nullptr;  ///< for messages; null: of the executor itself, or of no author
  std::vector<Copy> copies = {};     ///< copy, put, get
  std::vector<TensorView> writes = {}, reads = {};  ///< call, fill, launch
  const HostFunction* function = nullptr;
  uint32_t* flag = nullptr;
  int peer = -1;  ///< put, get, post, take; carry: one of them
  /// A transfer of a carry, with addresses in its strips.
  struct Carried {
    bool sends = false;
    uint32_t peer = 0, channel = 0, blocks = 0;
    uint64_t bytes = 0;
    std::vector<Strip> strips;
  };
  std::vector<Carried> carried = {};
  /// How many actions of a lane have to be done before an `after` is. A mark for which others wait has its
  /// own.
  struct Point {
    uint32_t lane = 0;
    uint64_t actions = 0;
    /// Position in Tape::actions of the mark that is there, behind which the lane has gone on; none: all that
    /// is on the lane so far.
    std::optional<uint32_t> mark = {};
  };
  std::vector<Point> points = {};
};

struct Tape {
  std::vector<Action> actions;               ///< in the order in which they are enqueued
  std::vector<std::vector<uint32_t>> lanes;  ///< by lane: its actions, in order
};

/// What a rank does in one run. All lanes begin behind what is on "main", and "main" ends behind all lanes.
/// \param before, after  copies of the executor, on "main"
/// \param functions      all that the schedule calls, by name
Tape make_tape(const Unrolled&, uint32_t rank, const Memory&, const HostFunctions& functions,
               const std::vector<Copy>& before, const std::vector<Copy>& after);

/// Calls the function of an action that is a call or a fill. Throws what the function throws.
/// \param stream  CUDA: of the action's lane
void call_function(const Action&, const World&, void* stream = nullptr);

/// "rank 1, lane comm, i = 2: take of 'data of G[0:1]' from rank 0 (ag.cpp:12)".
std::string describe(const host::Schedule&, const Unrolled&, uint32_t rank, const Action&);

}  // namespace chorale::hostrun
