#pragma once
/// \file
/// Shows where the time of a launch went, line by line of the author's source. It combines what
/// Executor::trace() of all ranks says with the plan, which knows who waits for whom. docs/traces.md says how
/// to read it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/executor.hpp"

namespace chorale {

/// Says which spans share a clock and so can be compared.
enum class Clocks : uint8_t {
  one,       ///< those of all ranks: the CPU's, on one host
  per_rank,  ///< only those of one rank: GPUs
};

/// Names what a thread block does, or what else the time of a launch goes to.
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

/// Adds up all spans of one operation of one line.
struct ProfileLine {
  ProfilePlace place;
  uint64_t spans = 0, total_ns = 0;
  uint64_t path_ns = 0;          ///< on the critical path
  uint64_t longest_ns = 0;       ///< the longest span
  uint32_t rank = 0, block = 0;  ///< the place of the longest span
};

/// Describes a part of the critical path: time that one thread block spent at one operation.
struct ProfileStretch {
  /// Tells what is known about the thread block's waits for others.
  enum class Waited : uint8_t {
    no,
    before,     ///< it waited until it began: the path goes on from there with those that released it
    for_peers,  ///< it waited in it, for `peers`; how long is not known, because their clocks differ
    unknown,    ///< it may have waited in it: thread blocks compete, or the spans do not say
  };
  ProfilePlace place;
  uint32_t rank = 0, block = 0;
  uint64_t from_ns = 0, to_ns = 0;  ///< since the launch began
  Waited waited = Waited::no;
  std::vector<uint32_t> peers = {};           ///< for_peers: these ranks, in ascending order
  std::optional<SourceLine> peers_line = {};  ///< the line of the peers, if they are all at one
};

/// Adds up the time of all spans, by kind.
struct ProfileTotals {
  uint64_t waiting_ns = 0;            ///< for channels, semaphores, barriers, packets and proxies
  uint64_t moving_ns = 0;             ///< moving data
  uint64_t waiting_or_moving_ns = 0;  ///< in operations on packets, which do not say when their packets came
  uint64_t earlier_turns_ns = 0;      ///< in the turns of pipelines before the last
  uint64_t other_ns = 0;

  uint64_t all_ns() const {
    return waiting_ns + moving_ns + waiting_or_moving_ns + earlier_turns_ns + other_ns;
  }
};

struct Profile {
  uint64_t launch = 0;     ///< 0: no launch of this message was traced
  uint64_t launch_ns = 0;  ///< with Clocks::per_rank, that of the rank that took longest
  /// The rank at which the path ends: the one whose spans ended last or, with Clocks::per_rank, that took
  /// longest.
  uint32_t rank = 0;
  std::vector<ProfileLine> lines;    ///< by time on the critical path, then by total time
  std::vector<ProfileStretch> path;  ///< in order of time, without gaps; neighbours differ
  ProfileTotals totals;
};

/// Makes a profile of the last launch that has spans.
/// \param arguments  those of the launches, with their packet if the configuration made it LL128
/// \param spans      those of all ranks, in any order; spans of other plans and messages are left out
/// \throws UsageError as message_sizes()
Profile profile(const Plan& plan, const Arguments& arguments, std::span<const TraceSpan> spans,
                Clocks clocks);

}  // namespace chorale
