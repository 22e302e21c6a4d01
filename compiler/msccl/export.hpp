#pragma once
/// \file
/// The export of a plan has four parts. list_items() says what each thread block does in the terms of MSCCL,
/// make_steps() joins that to steps, number_channels() gives channels numbers, and write_algorithm() writes
/// the file.

#include <cstdint>
#include <string>
#include <vector>

#include "algorithm.hpp"
#include "chorale/diagnostic.hpp"

namespace chorale::msccl {

/// Holds a part of an operation. A part that waits for others, or that others wait for, names an *event*: the
/// number-th time that a semaphore is released, or that a thread block arrives at a barrier.
struct Item {
  enum class Kind : uint8_t { copy, reduce, send, receive, release, acquire };
  Kind kind = Kind::copy;
  Region source, other, destination;  ///< reduce: destination = source + other; receive: only destination
  uint32_t event = 0;                 ///< release, acquire: below RankItems::events
  uint32_t op = 0;                    ///< the position of the operation in its thread block
  /// Send, receive: the other rank, and which channel to it: the first, the second and so on.
  uint32_t peer = 0, channel = 0;
  uint32_t sender = 0;  ///< receive: the thread block of the peer that sends
};

struct BlockItems {
  std::vector<Item> items;
  uint32_t origin = 0;              ///< the position of the plan's thread block
  int64_t send = -1, receive = -1;  ///< set by split_blocks(), as the next two: peers; -1: none
  uint32_t send_channel = 0;        ///< as Item::channel
  uint32_t sender = 0;              ///< the thread block of the peer `receive` that sends
};

struct RankItems {
  std::vector<BlockItems> blocks;
  uint32_t events = 0;
};

/// Lists what all thread blocks do, by rank. Reports each operation that MSCCL has no step for.
std::vector<RankItems> list_items(const Plan&, Diagnostics&);

/// Makes several thread blocks of each one that sends to several peers, or receives from several: one for
/// each peer. They wait for each other where the order of the items matters. Sends before receives may be in
/// any order.
void split_blocks(std::vector<RankItems>&);

/// Makes the steps of a gpu. A message that only waits in scratch for one operation is received by that
/// operation, and its place in scratch is left out of AlgorithmGpu::said_scratch.
void make_steps(const RankItems&, const Plan&, uint32_t rank, Algorithm&, Diagnostics&);

/// Sets Block::channel. All connections of a thread block have one number in MSCCL, and two connections from
/// one gpu to another have different numbers.
void number_channels(const std::vector<RankItems>&, Algorithm&, Diagnostics&);

/// Returns the text of a file.
std::string write_algorithm(const Algorithm&);

}  // namespace chorale::msccl
