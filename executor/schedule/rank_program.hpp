/// \file
/// A program is a host schedule on one rank, as a flat list of operations with addresses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "channel_assignment.hpp"
#include "chorale/host/concrete.hpp"
#include "chorale/schedule.hpp"
#include "copies.hpp"

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
  uint32_t flags_per_rank = 0;          ///< the most flags that one rank takes
  ChannelAssignment channels;
};

/// Turns a schedule into steps that lanes can do: puts, gets, carries, calls and launches, and flags by which
/// ranks tell each other that they are ready.
/// \param most_blocks  the most blocks of a transfer that is transfers
/// \throws UsageError for steps that have no realisation, and for flags that are not binary
Unrolled unroll(const host::Schedule&, host::Concrete expanded, uint32_t most_blocks);

/// The addresses of tensors and flags, as one rank sees them.
struct Memory {
  std::vector<std::vector<char*>> tensors;  ///< [rank][tensor]; null for those of peers that nobody reaches
  std::vector<uint32_t*> flags;             ///< by flag, at its taker; null if this rank has no part in it
};

/// One operation.
struct Action {
  /// A kind of expanded schedules: copy, fill, call, launch, after, mark, post, take, put, get, or SM copy.
  host::StepKind kind = host::StepKind::mark;
  uint32_t lane = 0;
  const host::Step* step = nullptr;  ///< for messages; null: of the executor itself, or of no author
  std::vector<Copy> copies = {};     ///< copy, put, get
  std::vector<TensorView> writes = {}, reads = {};  ///< call, fill, launch
  const HostFunction* function = nullptr;
  uint32_t* flag = nullptr;
  int peer = -1;  ///< put, get, post, take; carry: one of them
  /// A transfer of an SM copy, with addresses in its regions.
  struct Transfer {
    bool sends = false;
    uint32_t peer = 0, channel = 0, blocks = 0;
    uint64_t bytes = 0;
    std::vector<StridedRegion> regions;
  };
  std::vector<Transfer> transfers = {};
  /// The number of actions of a lane that have to be done before an `after` is. A mark for which others wait
  /// has a point of its own.
  struct Point {
    uint32_t lane = 0;
    uint64_t actions = 0;
    /// Position in RankProgram::actions of the mark at that point, if the lane has gone on after it. None:
    /// the point is after all actions on the lane so far.
    std::optional<uint32_t> mark = {};
  };
  std::vector<Point> points = {};
};

struct RankProgram {
  std::vector<Action> actions;               ///< in the order in which they are enqueued
  std::vector<std::vector<uint32_t>> lanes;  ///< by lane: the positions of its actions, in order
};

/// Makes the program of what a rank does in one run. All lanes begin after the work that is on "main", and
/// "main" ends after all lanes.
/// \param before, after  copies of the executor, on "main"
/// \param functions      all functions that the schedule calls, by name
RankProgram make_rank_program(const Unrolled&, uint32_t rank, const Memory&, const HostFunctions& functions,
                              const std::vector<Copy>& before, const std::vector<Copy>& after);

/// Calls the function of an action that is a call or a fill. Throws what the function throws.
/// \param stream  CUDA: the stream of the action's lane
void call_function(const Action&, const World&, void* stream = nullptr);

/// Returns text such as "rank 1, lane comm, i = 2: take of 'data of G[0:1]' from rank 0 (ag.cpp:12)".
std::string describe(const host::Schedule&, const Unrolled&, uint32_t rank, const Action&);

}  // namespace chorale::hostrun
