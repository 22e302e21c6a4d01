/// \file
/// These functions change the steps of a thread block while its program is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chorale/packet_form.hpp"
#include "program.hpp"

namespace chorale::lowering {

/// Holds a step with its items and places, for launches of one parity.
struct RecordedStep {
  ProgramStep step;
  std::vector<SyncItem> items;
  std::vector<ProgramPlace> plain, packets;  ///< sources, then sinks
  /// Hold the bytes by which each place advances from one turn of its loop to the next; empty outside loops.
  std::vector<uint64_t> plain_strides, packet_strides;
  uint64_t turns = 1;  ///< how often the step runs: the turns of its loop
};

/// Marks the data steps that move only whole units, and removes those that move nothing. Unless it keeps
/// tails, it splits every other step into whole units and a tail, because the fast path handles no tails. The
/// last chunk of a message counts as many bytes as the others, though not all of them exist. With LL128
/// packets the fast path moves the lines of all these bytes, and of plain memory the units that exist.
void mark_whole(std::vector<RecordedStep>& steps, PacketForm packet, bool keep_tails);

/// Returns true if all data steps are marked as whole.
bool are_whole(const std::vector<RecordedStep>& steps);

/// Returns true if each data step has at most one unit per thread of the largest block.
bool is_short(const std::vector<RecordedStep>& steps);

/// Removes syncs that order nothing, and joins adjacent steps that can be one. The compiler puts syncs around
/// every signal and wait, because MSCCL++ needs them.
void tidy(std::vector<RecordedStep>& steps);

/// Returns the number of steps from `at` on that may run at the same time: they have the same kind and size,
/// have no sync between them, and none touches memory that another one writes.
uint16_t batch_from(const std::vector<RecordedStep>& steps, size_t at, size_t end);

/// Returns true if exchange.cuh can run these steps: they only move and add up data and wait for packets.
bool is_exchange(const std::vector<RecordedStep>& steps);

/// Returns the largest number of threads that can work at a time, if each moves one unit and then goes on to
/// the next step. Call paginate() first: it finds the batches of the steps.
uint64_t busy_threads(const std::vector<RecordedStep>& steps, PacketForm packet);

}  // namespace chorale::lowering
