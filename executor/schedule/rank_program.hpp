/// \file
/// A program is a host schedule on one rank, as a flat list of operations with addresses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/schedule.hpp"
#include "chorale/schedule/concrete.hpp"
#include "copies.hpp"

namespace chorale::schedule_run {

/// Names a flag of Concrete, or one that the executor adds for itself.
struct FlagUse {
  uint32_t poster = 0, taker = 0;
  std::string name;
};

/// Holds a schedule for all ranks, as steps without addresses.
struct Unrolled {
  schedule::Concrete concrete;          ///< with movers expanded and barriers turned into flags
  std::vector<bool> reached;            ///< by tensor: peers read or write it
  std::vector<FlagUse> flags;           ///< at the positions of Concrete::flags
  std::vector<uint32_t> place_of_flag;  ///< by flag: its position among the flags of its taker
  uint32_t flags_per_rank = 0;          ///< the most flags that one rank takes
};

/// Turns a schedule into steps that streams can do: puts, gets, calls and launches, and flags by
/// which ranks tell each other that they are ready.
/// \throws UsageError for steps that cannot be carried out, and for flags that are not binary
Unrolled unroll(const schedule::Schedule&, schedule::Concrete expanded);

/// Holds the addresses of tensors and flags, as one rank sees them.
struct Memory {
  std::vector<std::vector<char*>> tensors;  ///< [rank][tensor]; null for tensors of peers that no one reaches
  std::vector<uint32_t*> flags;             ///< by flag, at its taker; null if this rank has no part in it
};

/// Describes one operation.
struct Action {
  /// Holds a step kind of expanded schedules: copy, fill, call, launch, after, mark, post, take, put, or
  /// get.
  schedule::StepKind kind = schedule::StepKind::mark;
  uint32_t stream = 0;
  /// Names the step in messages. Null: the executor added the action, or no author is known.
  const schedule::Step* step = nullptr;
  std::vector<Copy> copies = {};                    ///< copy, put, get
  std::vector<TensorView> writes = {}, reads = {};  ///< call, fill, launch
  const HostFunction* function = nullptr;
  uint32_t* flag = nullptr;
  int peer = -1;  ///< put, get, post, take
  /// Gives the number of a stream's actions that must be done before an `after` is done. A mark for which
  /// others wait has its own point.
  struct Point {
    uint32_t stream = 0;
    uint64_t actions = 0;
    /// Holds the position in RankProgram::actions of the mark at that point, if the stream has gone on after
    /// it. None: the point is after all actions on the stream so far.
    std::optional<uint32_t> mark = {};
  };
  std::vector<Point> points = {};
};

struct RankProgram {
  std::vector<Action> actions;                 ///< in the order in which they are enqueued
  std::vector<std::vector<uint32_t>> streams;  ///< by stream: the positions of its actions, in order
};

/// Makes the program of one rank's run. All streams begin after the work on "main", and "main" ends after all
/// streams.
/// \param before, after the executor's copies, on "main"
/// \param functions all functions that the schedule calls, by name
RankProgram make_rank_program(const Unrolled&, uint32_t rank, const Memory&, const HostFunctions& functions,
                              const std::vector<Copy>& before, const std::vector<Copy>& after);

/// Calls the function of an action that is a call or a fill. Throws the function's exceptions.
/// \param stream CUDA: the CUDA stream of the action
void call_function(const Action&, const World&, void* stream = nullptr);

/// Returns text such as "rank 1, stream comm, i = 2: take of 'data of G[0:1]' from rank 0 (ag.cpp:12)".
std::string describe(const schedule::Schedule&, const Unrolled&, uint32_t rank, const Action&);

}  // namespace chorale::schedule_run
