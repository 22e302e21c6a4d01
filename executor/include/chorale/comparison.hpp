#pragma once
/// \file
/// A measured launch beside a predicted one, in the author's lines: what Executor::trace() of all ranks says,
/// and the spans of simulate(). docs/traces.md says how to read it.
///
/// What is compared is the time that a thread block spends at an operation of a line, over all thread blocks
/// of all ranks. It needs no two clocks, and it is the time of a launch, not of one of its many spans.

#include <cstdint>
#include <span>
#include <vector>

#include "chorale/profile.hpp"

namespace chorale {

/// What the time of an operation is.
enum class TimeKind : uint8_t {
  work,     ///< moving data, telling others, synchronising threads
  packets,  ///< waiting for packets and moving them, of which is not known apart how long it took
  turns,    ///< with the turns of a pipeline before the last, whatever they did
  waits,    ///< for channels, semaphores, barriers and proxies: time of others, of ranks that began late, too
};

/// Time of a thread block, of several: their median, and the longest.
struct BlockTimes {
  uint64_t median_ns = 0, longest_ns = 0;
  uint32_t rank = 0, block = 0;  ///< where the longest was
};

/// All operations of one name at one line.
struct ComparedLine {
  ProfilePlace place;
  TimeKind kind = TimeKind::work;
  /// What is counted with them, since one side has no time of its own for it: operations that a GPU did
  /// together with these, and threads synchronised before them.
  std::vector<ProfilePlace> with;
  uint32_t blocks = 0;  ///< thread blocks, the same on both sides
  BlockTimes measured, predicted;

  /// Of the medians; above 0: it took longer than predicted.
  int64_t gap_ns() const { return int64_t(measured.median_ns) - int64_t(predicted.median_ns); }
};

/// All time of one kind, also what only one side has.
struct ComparedKind {
  TimeKind kind = TimeKind::work;
  uint32_t blocks = 0;  ///< that have any
  BlockTimes measured, predicted;
};

struct Comparison {
  uint64_t launch = 0;  ///< that was measured; 0: nothing was traced of this message
  /// From the beginning of the launch to its end; measured with Clocks::per_rank of the rank that took
  /// longest.
  uint64_t measured_ns = 0, predicted_ns = 0;
  /// What both sides have: by how large the gap is, waits behind all else.
  std::vector<ComparedLine> lines;
  std::vector<ComparedLine> only_measured;   ///< by median; there is nothing to do by the prediction
  std::vector<ComparedLine> only_predicted;  ///< by median; it has no span
  std::vector<ComparedKind> kinds;           ///< in their order; none without time
};

/// \param bytes      of the message
/// \param measured   of all ranks, in any order; what is of other plans and messages is left out, and of
///                   several launches the last one is looked at
/// \param clocks     of what was measured
/// \param predicted  Simulation::spans of a call of the same plan, bytes, dtype and packets
Comparison compare(const Plan& plan, uint64_t bytes, std::span<const TraceSpan> measured, Clocks clocks,
                   std::span<const TraceSpan> predicted);

}  // namespace chorale
