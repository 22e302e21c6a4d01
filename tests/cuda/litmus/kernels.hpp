/// \file
/// The kernels of the litmus tests on GPUs. C++17, for nvcc.
#pragma once

#include <cstdint>

namespace chorale::litmus {

constexpr uint32_t threads = 256;
constexpr uint32_t words_apart = 16;  ///< a line of 128 bytes for each thread's word

/// The findings of a kernel.
struct Tally {
  uint64_t rounds = 0;  ///< rounds that came to their end
  uint64_t stale = 0;   ///< words that did not hold what their round wrote
  uint32_t stop = 0;    ///< a Stop: why it ended before the last round
};

/// Memory of one GPU that the other reaches.
struct Room;
uint64_t room_bytes();

/// The memory order with which a writer says that its data is there.
enum class Publish : uint32_t { release, relaxed };
/// The memory order with which a reader looks.
enum class Look : uint32_t { acquire, relaxed };

/// Launch one block a rank. The writer stores a word a thread into the reader's room, meets, and posts. The
/// reader waits and loads the words by other threads than those that stored them. Each needs a stream of its
/// own.
void launch_message_writer(Room* mine, Room* peers, uint64_t rounds, Publish, uint64_t timeout_ns, Tally*,
                           void* stream);
void launch_message_reader(Room* mine, Room* peers, uint64_t rounds, Look, uint64_t timeout_ns, Tally*,
                           void* stream);

/// Launch the same with a packet a thread in place of the post. Words that the packets themselves carry count
/// apart.
void launch_packet_writer(Room* mine, Room* peers, uint64_t rounds, uint64_t timeout_ns, Tally*,
                          void* stream);
void launch_packet_reader(Room* mine, Room* peers, uint64_t rounds, uint64_t timeout_ns, Tally* plain,
                          Tally* carried, void* stream);

/// The instruction between a store through one address and a load of the same bytes through another, by one
/// block on the default stream.
enum class Between : uint32_t { nop, fence, proxy_fence };
void launch_alias(uint64_t* stores, const uint64_t* loads, uint64_t rounds, Between, Tally*);

/// Launch the work between replays of a graph: new inputs for the round that `round` counts, and a look at
/// the outputs.
void launch_fill(uint32_t* input, uint64_t n, uint32_t rank, const uint64_t* round, void* stream);
void launch_compare(const uint32_t* output, uint64_t n, uint32_t ranks, uint64_t* round, Tally*,
                    void* stream);

}  // namespace chorale::litmus
