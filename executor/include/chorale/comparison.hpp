#pragma once
/// \file
/// compare() compares a measured launch with a predicted one, for each line of the author's source. It takes
/// the spans of Executor::trace() of all ranks and the spans of simulate(). docs/traces.md explains how to
/// read the result.
///
/// For each line it takes the time that every thread block of every rank spends at the line's operations in
/// one launch. The clocks of the ranks may differ, because only durations are compared.

#include <cstdint>
#include <span>
#include <vector>

#include "chorale/profile.hpp"

namespace chorale {

/// Names what an operation spends its time on.
enum class TimeKind : uint8_t {
  work,     ///< moving data, signalling other ranks, synchronising threads
  packets,  ///< waiting for packets and moving them; the share of each is not known
  turns,    ///< the turns of a pipeline before its last turn, whatever they did
  waits,    ///< waiting for channels, semaphores, barriers and proxies; includes waits for ranks that began
            ///< late
};

/// Holds the median and the longest time of several thread blocks. With one block the two are equal.
struct BlockTimes {
  uint64_t median_ns = 0, longest_ns = 0;
  uint32_t rank = 0, block = 0;  ///< where the longest time was
};

/// Compares all operations of one name at one line.
struct ComparedLine {
  ProfilePlace place;
  TimeKind kind = TimeKind::work;
  /// Lists other operations whose time is counted here, because one side does not time them separately. These
  /// are operations that a GPU did together with this one, and the synchronisation of threads before it.
  std::vector<ProfilePlace> with;
  uint32_t blocks = 0;  ///< the number of thread blocks, the same in measurement and prediction
  BlockTimes measured, predicted;

  /// Returns the gap between the medians. It is above 0 when the launch took longer than predicted.
  int64_t gap_ns() const { return int64_t(measured.median_ns) - int64_t(predicted.median_ns); }
};

/// Compares all time of one kind. It includes lines that only the measurement or only the prediction has.
struct ComparedKind {
  TimeKind kind = TimeKind::work;
  uint32_t blocks = 0;  ///< the number of thread blocks that spend time of this kind
  BlockTimes measured, predicted;
};

/// Holds the result of compare().
struct Comparison {
  uint64_t launch = 0;  ///< the number of the measured launch; 0: no launch of this message was traced
  /// Holds the time from the beginning of the launch to its end. With Clocks::per_rank, the measured time is
  /// that of the slowest rank.
  uint64_t measured_ns = 0, predicted_ns = 0;
  /// Lists the lines that are measured and predicted, sorted by the size of the gap; waits come last.
  std::vector<ComparedLine> lines;
  std::vector<ComparedLine> only_measured;   ///< sorted by median; the prediction has no operation there
  std::vector<ComparedLine> only_predicted;  ///< sorted by median; no span was measured there
  std::vector<ComparedKind> kinds;           ///< in the order of TimeKind; kinds without time are left out
};

/// Compares the last measured launch of a plan with its prediction.
/// \param bytes      the size of the message
/// \param measured   the spans of all ranks, in any order. It ignores spans of other plans and messages, and
///                   all launches but the last
/// \param clocks     the clocks of the measured spans
/// \param predicted  Simulation::spans of a simulated call with the same plan, bytes, dtype and packets
Comparison compare(const Plan& plan, uint64_t bytes, std::span<const TraceSpan> measured, Clocks clocks,
                   std::span<const TraceSpan> predicted);

}  // namespace chorale
