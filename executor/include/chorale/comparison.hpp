#pragma once
/// \file
/// Sets a measured launch beside a predicted one, line by line of the author's source. It takes what
/// Executor::trace() of all ranks says, and the spans of simulate(). docs/traces.md says how to read it.
///
/// It compares the time that a thread block spends at an operation of a line, over all thread blocks of all
/// ranks. This needs no common clock, and it is the time of a launch, not of one of its many spans.

#include <cstdint>
#include <span>
#include <vector>

#include "chorale/profile.hpp"

namespace chorale {

/// Says what the time of an operation goes to.
enum class TimeKind : uint8_t {
  work,     ///< moving data, telling others, synchronising threads
  packets,  ///< waiting for packets and moving them; how long each took is not known
  turns,    ///< with the turns of a pipeline before the last, whatever they did
  waits,    ///< for channels, semaphores, barriers and proxies; includes waits for ranks that began late
};

/// Holds the time of one thread block; for several blocks, the median and the longest.
struct BlockTimes {
  uint64_t median_ns = 0, longest_ns = 0;
  uint32_t rank = 0, block = 0;  ///< the place of the longest time
};

/// Compares all operations of one name at one line.
struct ComparedLine {
  ProfilePlace place;
  TimeKind kind = TimeKind::work;
  /// The operations whose time is counted here because one side has no time of its own for them: those that a
  /// GPU did together with these, and the synchronisation of threads before them.
  std::vector<ProfilePlace> with;
  uint32_t blocks = 0;  ///< thread blocks, the same on both sides
  BlockTimes measured, predicted;

  /// Returns the gap of the medians. It is above 0 when the launch took longer than predicted.
  int64_t gap_ns() const { return int64_t(measured.median_ns) - int64_t(predicted.median_ns); }
};

/// Compares all time of one kind. It includes the lines that only one side has.
struct ComparedKind {
  TimeKind kind = TimeKind::work;
  uint32_t blocks = 0;  ///< thread blocks that have time of this kind
  BlockTimes measured, predicted;
};

struct Comparison {
  uint64_t launch = 0;  ///< the launch that was measured; 0: no launch of this message was traced
  /// The time from the beginning of the launch to its end. With Clocks::per_rank, the measured time is that
  /// of the rank that took longest.
  uint64_t measured_ns = 0, predicted_ns = 0;
  /// The lines that both sides have, by the size of the gap; waits come after all else.
  std::vector<ComparedLine> lines;
  std::vector<ComparedLine> only_measured;   ///< by median; the prediction has nothing to do there
  std::vector<ComparedLine> only_predicted;  ///< by median; no span was measured there
  std::vector<ComparedKind> kinds;           ///< in the order of TimeKind; kinds without time are left out
};

/// Compares the last measured launch of a plan with its prediction.
/// \param bytes      the size of the message
/// \param measured   the spans of all ranks, in any order. Spans of other plans and messages are left out; of
///                   several launches only the last counts
/// \param clocks     the clocks of the measured spans
/// \param predicted  Simulation::spans of a call of the same plan, bytes, dtype and packets
Comparison compare(const Plan& plan, uint64_t bytes, std::span<const TraceSpan> measured, Clocks clocks,
                   std::span<const TraceSpan> predicted);

}  // namespace chorale
