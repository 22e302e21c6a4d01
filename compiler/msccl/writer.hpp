#pragma once
/// \file
/// A RankWriter appends operations to a plan. Its arguments name ranks and buffers, and it keeps the lists
/// that number them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "algorithm.hpp"
#include "chorale/plan.hpp"

namespace chorale::msccl {

/// Writes the operations of one rank.
class RankWriter {
 public:
  RankWriter(Gpu& gpu, size_t blocks);

  /// Adds a memory channel to a peer. The k-th channel to the peer and the k-th one back are a pair.
  uint32_t add_channel(uint32_t peer);
  uint32_t add_semaphore();

  /// Appends an operation to thread block `block`, with the author's line `at` (as Op::at). The next three
  /// functions do the same for other operations.
  void control(uint32_t block, Opcode, std::span<const uint32_t> channels_or_semaphores, uint32_t at);
  void copy(uint32_t block, Region from, Region to, uint32_t at);
  /// Appends `to` = `from` + `other`.
  void reduce(uint32_t block, Region from, Region other, Region to, uint32_t at);
  void put(uint32_t block, Region from, uint32_t peer, Region to, uint32_t at);

 private:
  Op& append(uint32_t block, Opcode, std::span<const Operand> from, std::span<const Operand> to, uint32_t at);
  uint32_t remote_buffer(ThreadBlock&, uint32_t peer, BufferKind);

  Gpu& gpu_;
  std::map<std::pair<uint32_t, BufferKind>, uint32_t> remote_buffers_;
};

}  // namespace chorale::msccl
