#pragma once
/// \file
/// A Recording holds a launch in the form that the simulator needs. For each thread block, it has the events
/// of its operations in order, and what each of them waits for. It does not depend on the machine. Without
/// pipelines, it does not depend on the size of the message either.

#include <cstdint>
#include <vector>

#include "compiler/proof/execution/memory.hpp"
#include "compiler/proof/execution/symbolic_executor.hpp"

namespace chorale::simulation {

/// Describes data that is moved together: how many operands of each kind, and which part of the message.
struct Move {
  uint16_t reads = 0, writes = 0, gets = 0, puts = 0;  ///< plain operands, here and at peers
  uint16_t packet_reads = 0, packet_writes = 0, packet_puts = 0;
  uint16_t coded_reads = 0, coded_writes = 0, coded_gets = 0, coded_puts = 0;  ///< those that are encoded
  uint8_t codec = 0;                        ///< as Operand::codec; 0: none is encoded
  uint16_t combined = 0;                    ///< operands that are combined with another
  BufferKind buffer = BufferKind::scratch;  ///< input or output: where the end of the message cuts it
  uint64_t begin = 0, end = 0;              ///< atoms of that buffer; for scratch, from 0

  bool operator==(const Move&) const = default;
};

/// Names a peer whose link and memory a move uses.
struct Peer {
  enum class Traffic : uint8_t { get, put, packets };
  uint32_t rank;
  Traffic traffic;
};

/// Stands for a condition that some events complete and others wait for.
using Token = uint32_t;
inline constexpr Token no_token = ~Token{0};

struct Event {
  enum class Kind : uint8_t { move, post, take, push, drain, arrive };
  Kind kind = Kind::move;
  bool synced = false;     ///< after a synchronisation of the block's threads
  bool continued = false;  ///< the same operation as the event before, and concurrent with it
  bool relaxed = false;
  bool local = false;  ///< for a semaphore instead of a channel
  uint32_t op = 0;     ///< of the block; in a pipeline before its last turn, the pipeline
  uint32_t move = 0;   ///< move, and push with data: in Recording::moves, from 1 on; 0: none
  uint32_t first_peer = 0;
  uint16_t peers = 0;
  uint32_t first_awaited = 0, awaited = 0;  ///< in Recording::awaited
  Token token = no_token;  ///< post, push: the signal; move: its packets; arrive: the barrier
  Token done = no_token;   ///< push: it was executed
};

struct Recording {
  proof::Message message;
  std::vector<std::vector<Event>> blocks;  ///< by chain of the symbolic executor
  std::vector<uint32_t> ranks, positions;  ///< by chain: its rank, and the position of its thread block
  std::vector<Move> moves;                 ///< the first one is empty
  std::vector<Peer> peers;
  std::vector<Token> awaited;
  std::vector<uint32_t> needed;  ///< by token: number of events that complete it
  uint64_t ops = 0;
};

/// Returns the message of a call whose turns are all recorded.
/// \throws UsageError if groups of thread blocks share its chunks in too many ways
proof::Message recorded_message(const Plan&, uint64_t chunk_bytes);

/// Executes a launch symbolically and records it.
/// \throws UsageError if the plan cannot be executed symbolically
Recording record(const Plan&, const proof::Message&);

}  // namespace chorale::simulation
