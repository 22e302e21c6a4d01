#pragma once
/// \file
/// A profile shows where the time of a launch went, for each line of the author's source. It combines the
/// spans of Executor::trace() of all ranks with the plan, which tells which thread block waits for which.
/// docs/traces.md explains how to read it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/arguments.hpp"
#include "chorale/plan.hpp"
#include "chorale/trace_span.hpp"

namespace chorale {

/// Tells which spans share a clock, so that their times can be compared.
enum class Clocks : uint8_t {
  one,       ///< all ranks share a clock, as on the CPU of one host
  per_rank,  ///< each rank has a separate clock, as on GPUs
};

/// Names what a thread block does, or another part of a launch that takes time.
struct ProfilePlace {
  enum class Kind : uint8_t {
    operation,
    rank_begins,   ///< other ranks have begun their launch, but this rank has not
    block_begins,  ///< the rank has begun, but this thread block has not
  };
  Kind kind = Kind::operation;
  std::string_view name;  ///< the operation's name, a literal
  SourceLine line;        ///< the author's line; 0: unknown

  bool operator==(const ProfilePlace&) const = default;
};

/// Adds up all spans of one operation of one line.
struct ProfileLine {
  ProfilePlace place;
  uint64_t spans = 0, total_ns = 0;
  uint64_t path_ns = 0;          ///< on the critical path
  uint64_t longest_ns = 0;       ///< the longest span
  uint32_t rank = 0, block = 0;  ///< the rank and the thread block of the longest span
};

/// Describes a part of the critical path: time that one thread block spent at one operation.
struct ProfileStretch {
  /// Tells whether the thread block waited for other thread blocks, as far as that is known.
  enum class Waited : uint8_t {
    no,
    before,     ///< it waited just before this part. The part before it on the path belongs to the thread
                ///< block that released it
    for_peers,  ///< it waited for `peers` in the operation; how long is not known, because clocks differ
    unknown,    ///< it may have waited: thread blocks compete, or the spans do not tell
  };
  ProfilePlace place;
  uint32_t rank = 0, block = 0;
  uint64_t from_ns = 0, to_ns = 0;  ///< since the launch began
  Waited waited = Waited::no;
  std::vector<uint32_t> peers = {};           ///< with for_peers: the ranks, in ascending order
  std::optional<SourceLine> peers_line = {};  ///< the line of the peers, if they are all at one
};

/// Adds up the time of all spans, by kind.
struct ProfileTotals {
  uint64_t waiting_ns = 0;            ///< waiting for channels, semaphores, barriers, packets and proxies
  uint64_t moving_ns = 0;             ///< moving data
  uint64_t waiting_or_moving_ns = 0;  ///< operations on packets; their share of waiting is not known
  uint64_t earlier_turns_ns = 0;      ///< the turns of pipelines before the last turn
  uint64_t other_ns = 0;

  uint64_t all_ns() const {
    return waiting_ns + moving_ns + waiting_or_moving_ns + earlier_turns_ns + other_ns;
  }
};

/// Tells where the time of one launch went.
struct Profile {
  uint64_t launch = 0;     ///< the number of the launch; 0: no launch of this message was traced
  uint64_t launch_ns = 0;  ///< with Clocks::per_rank, the time of the slowest rank
  /// Names the rank at which the path ends. It is the rank whose spans ended last or, with Clocks::per_rank,
  /// the slowest rank.
  uint32_t rank = 0;
  std::vector<ProfileLine> lines;    ///< sorted by time on the critical path, then by total time
  std::vector<ProfileStretch> path;  ///< in order of time, without gaps; neighbours differ
  ProfileTotals totals;
};

/// Returns a profile of the last launch that has spans.
/// \param arguments  the arguments of the launches. Set `packet` if the configuration made it LL128
/// \param spans      the spans of all ranks, in any order; spans of other plans and messages are ignored
/// \throws UsageError as message_sizes()
Profile profile(const Plan& plan, const Arguments& arguments, std::span<const TraceSpan> spans,
                Clocks clocks);

}  // namespace chorale
