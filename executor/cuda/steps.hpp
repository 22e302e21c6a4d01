/// \file
/// Steps of a thread block's tape while it is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chorale/executor.hpp"
#include "tape.hpp"

namespace chorale::cuda {

/// A step with what it works on, for one parity of the launch.
struct Step {
  TapeStep step;
  std::vector<TapeItem> items;
  std::vector<TapePlace> plain, packets;  ///< sources, then sinks
};

/// Data steps as whole units, or whole lines, and what is left of them apart: the fast way knows no tails.
/// The last chunk of a message counts as many bytes as the others, though not all of them exist.
void split_tails(std::vector<Step>& steps, PacketForm packet);

/// Leaves out syncs that order nothing: the compiler puts them around every signal and wait, since MSCCL++
/// knows no other way. Joins what can go together.
void tidy(std::vector<Step>& steps);

/// Steps from `at` on that may run side by side: alike, of equal size, with no sync between them, and none
/// touches what another one writes.
uint16_t batch_from(const std::vector<Step>& steps, size_t at, size_t end);

/// Whether exchange.cuh can play a tape of these steps: they do nothing but move and add up whole units, and
/// wait for packets.
bool is_exchange(const std::vector<Step>& steps);

/// Threads that have something to do at a time, at most, if each moves a unit and then the next step's: of
/// steps whose batches have been found, see paginate().
uint64_t busy_threads(const std::vector<Step>& steps, PacketForm packet);

}  // namespace chorale::cuda
