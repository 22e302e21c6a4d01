#pragma once
/// \file
/// Where the time of a launch went, in the author's lines: what Executor::trace() of all ranks says, with the
/// plan, which knows who waits for whom. docs/traces.md says how to read it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/executor.hpp"

namespace chorale {

/// Whose spans can be compared.
enum class Clocks : uint8_t {
  one,       ///< all ranks': the CPU's, on one host
  per_rank,  ///< only those of one rank: GPUs'
};

/// What a thread block does, or what else the time of a launch goes to.
struct ProfilePlace {
  enum class Kind : uint8_t {
    operation,
    rank_begins,   ///< the rank has not begun its launch yet, and others have
    block_begins,  ///< the rank has, and this thread block has not
  };
  Kind kind = Kind::operation;
  std::string_view name;  ///< the operation's, a literal
  SourceLine line;        ///< the author's; line 0: unknown

  bool operator==(const ProfilePlace&) const = default;
};

/// All spans of one operation of one line.
struct ProfileLine {
  ProfilePlace place;
  uint64_t spans = 0, total_ns = 0;
  uint64_t path_ns = 0;          ///< on the critical path
  uint64_t longest_ns = 0;       ///< the longest span
  uint32_t rank = 0, block = 0;  ///< and where it was
};

/// A part of the critical path: time in which one thread block was at one operation.
struct ProfileStretch {
  /// What is known of whom it waited for.
  enum class Waited : uint8_t {
    no,
    before,     ///< until it began: the path goes on from there with those that released it
    for_peers,  ///< in it, for `peers`: how long is not known, since their clocks are others
    unknown,    ///< perhaps in it: thread blocks compete, or the spans do not say
  };
  ProfilePlace place;
  uint32_t rank = 0, block = 0;
  uint64_t from_ns = 0, to_ns = 0;  ///< since the launch began
  Waited waited = Waited::no;
  std::vector<uint32_t> peers = {};           ///< for_peers: these ranks, in ascending order
  std::optional<SourceLine> peers_line = {};  ///< theirs, if it is one
};

/// All spans' times.
struct ProfileTotals {
  uint64_t waiting_ns = 0;            ///< for channels, semaphores, barriers, packets and proxies
  uint64_t moving_ns = 0;             ///< data
  uint64_t waiting_or_moving_ns = 0;  ///< in operations on packets, of which is not known when they came
  uint64_t earlier_turns_ns = 0;      ///< of pipelines: all but the last
  uint64_t other_ns = 0;

  uint64_t all_ns() const {
    return waiting_ns + moving_ns + waiting_or_moving_ns + earlier_turns_ns + other_ns;
  }
};

struct Profile {
  uint64_t launch = 0;     ///< 0: nothing was traced of this message
  uint64_t launch_ns = 0;  ///< with Clocks::per_rank of the rank that took longest
  /// Where the path ends: whose spans ended last, or, with Clocks::per_rank, the rank that took longest.
  uint32_t rank = 0;
  std::vector<ProfileLine> lines;    ///< by time on the critical path, then by total time
  std::vector<ProfileStretch> path;  ///< in order of time, without gaps; neighbours differ
  ProfileTotals totals;
};

/// \param arguments  of the launches, with their packet where it was LL128 by configuration; the last one
/// that
///                   has spans is looked at
/// \param spans      of all ranks, in any order; what is of other plans and messages is left out
/// \throws UsageError as message_sizes()
Profile profile(const Plan& plan, const Arguments& arguments, std::span<const TraceSpan> spans,
                Clocks clocks);

}  // namespace chorale
