#pragma once
/// \file
/// Places says where the chunks of a design are in the buffers of the ranks.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "chorale/collective.hpp"
#include "chorale/dsl.hpp"
#include "design.hpp"

namespace chorale::synthesis {

/// Names some of the parts into which Design::lanes cuts each chunk.
struct Parts {
  int64_t first = 0, count = 1;
};

class Places {
 public:
  Places(dsl::Program&, const Network&, const Design&);

  /// Returns what `rank` contributes to a piece.
  dsl::Chunk input(const Stage&, uint32_t piece, uint32_t rank, Parts) const;
  /// Returns where the result of a piece is on `rank`.
  dsl::Chunk output(const Stage&, uint32_t piece, uint32_t rank, Parts) const;

  /// Returns where a rank copies parts of its own input, and from where. A reduction has none.
  std::vector<std::pair<dsl::Chunk, dsl::Chunk>> own(uint32_t rank, int64_t lane) const;
  /// Returns whether own() returns any.
  bool has_own(uint32_t rank) const;

 private:
  /// Returns the chunk of a piece in a buffer that is cut so.
  int64_t index(const Stage&, uint32_t piece, CollectiveInfo::Cut) const;
  dsl::Chunk chunk(const dsl::BaseBuffer&, int64_t index, Parts) const;

  const Design& design_;
  const CollectiveInfo& collective_;
  std::vector<dsl::BaseBuffer> inputs_, outputs_;
  std::vector<int64_t> begins_;  // by rank: the first chunk of an all-reduce whose sum it makes
};

/// Numbers the thread blocks and the scratch of each rank.
class Resources {
 public:
  Resources(uint32_t ranks, int64_t lanes) : lanes_(lanes), blocks_(ranks, 0), slots_(ranks, 0) {}

  /// Returns the first of `count` new thread blocks.
  int64_t blocks(uint32_t rank, int64_t count) { return std::exchange(blocks_[rank], blocks_[rank] + count); }
  /// Returns a new slot, which holds one chunk.
  int64_t slot(uint32_t rank) { return slots_[rank]++; }

  void make_scratch(dsl::Program&);
  dsl::Chunk scratch(uint32_t rank, int64_t slot, Parts) const;

 private:
  const int64_t lanes_;
  std::vector<int64_t> blocks_, slots_;
  std::vector<std::optional<dsl::Buffer>> scratch_;
};

}  // namespace chorale::synthesis
