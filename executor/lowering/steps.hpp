/// \file
/// These functions work on the steps of a thread block while its program is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chorale/executor.hpp"
#include "program.hpp"

namespace chorale::lowering {

/// A step with its items and places, for one parity of the launch.
struct RecordedStep {
  ProgramStep step;
  std::vector<SyncItem> items;
  std::vector<ProgramPlace> plain, packets;  ///< sources, then sinks
  /// The bytes by which each place moves on from one turn of its loop to the next; empty outside loops.
  std::vector<uint64_t> plain_strides, packet_strides;
};

/// Returns how often each step runs: the turns of the loop that it is in, or 1.
std::vector<uint64_t> turns_of(const std::vector<RecordedStep>& steps);

/// Splits each data step into whole units, or whole lines, and a tail, because the fast way knows no tails.
/// The last chunk of a message counts as many bytes as the others, though not all of them exist.
void split_tails(std::vector<RecordedStep>& steps, PacketForm packet);

/// Removes syncs that order nothing, and joins steps that can go together. The compiler puts syncs around
/// every signal and wait, since MSCCL++ knows no other way.
void tidy(std::vector<RecordedStep>& steps);

/// Returns the number of steps from `at` on that may run side by side: they are of one kind and size, have no
/// sync between them, and none touches what another one writes.
uint16_t batch_from(const std::vector<RecordedStep>& steps, size_t at, size_t end);

/// Returns true if exchange.cuh can run these steps: they only move and add up whole units, and
/// wait for packets.
bool is_exchange(const std::vector<RecordedStep>& steps);

/// Returns the most threads that have something to do at a time, if each moves one unit and then goes on to
/// the next step. The batches of the steps must have been found, see paginate().
uint64_t busy_threads(const std::vector<RecordedStep>& steps, PacketForm packet);

}  // namespace chorale::lowering
