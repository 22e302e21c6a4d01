/// \file
/// Declares the kernels of the litmus tests on GPUs. It is C++17, for nvcc.
#pragma once

#include <cstdint>

namespace chorale::litmus {

constexpr uint32_t threads = 256;
constexpr uint32_t words_apart = 16;  ///< a line of 128 bytes for each thread's word

/// Holds the findings of a kernel.
struct Tally {
  uint64_t rounds = 0;  ///< rounds that completed
  uint64_t stale = 0;   ///< words that did not hold what their round wrote
  uint32_t stop = 0;    ///< a Stop: the reason why it ended before the last round
};

/// Names memory of one GPU that the other reaches.
struct Room;
uint64_t room_bytes();

/// Names the memory order with which a writer publishes its data.
enum class Publish : uint32_t { release, relaxed };
/// Names the memory order with which a reader looks.
enum class Look : uint32_t { acquire, relaxed };

/// Launch one block per rank. Each writer thread stores a word into the reader's memory; then the block
/// synchronises and posts. The reader waits, and loads the words with other threads than those that stored
/// them. Each needs a separate stream.
void launch_message_writer(Room* mine, Room* peers, uint64_t rounds, Publish, uint64_t timeout_ns, Tally*,
                           void* stream);
void launch_message_reader(Room* mine, Room* peers, uint64_t rounds, Look, uint64_t timeout_ns, Tally*,
                           void* stream);

/// Launch the same with a packet per thread in place of the post. Words that the packets themselves carry are
/// counted separately.
void launch_packet_writer(Room* mine, Room* peers, uint64_t rounds, uint64_t timeout_ns, Tally*,
                          void* stream);
void launch_packet_reader(Room* mine, Room* peers, uint64_t rounds, uint64_t timeout_ns, Tally* plain,
                          Tally* carried, void* stream);

/// Names the instruction between a store through one address and a load of the same bytes through another, by
/// one block on the default stream.
enum class Between : uint32_t { nop, fence, proxy_fence };
void launch_alias(uint64_t* stores, const uint64_t* loads, uint64_t rounds, Between, Tally*);

/// Launch the work between replays of a graph: write new inputs for the round that `round` counts, and check
/// that the outputs are `times` the sums of all ranks.
void launch_fill(uint32_t* input, uint64_t n, uint32_t rank, const uint64_t* round, void* stream);
void launch_compare(const uint32_t* output, uint64_t n, uint32_t ranks, uint32_t times, uint64_t* round,
                    Tally*, void* stream);

}  // namespace chorale::litmus
