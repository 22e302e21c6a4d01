#pragma once
/// \file
/// A Design says which chunks travel over which connections in which order. program_of() writes it as a
/// program.

#include <cstdint>
#include <string>
#include <vector>

#include "chorale/dsl/program.hpp"
#include "order.hpp"

namespace chorale::synthesis {

/// Chunks flow down trees, or up trees while they are added.
struct Stage {
  std::vector<Tree> trees;
  std::vector<Piece> pieces;
  Order order;
  bool used() const { return !pieces.empty(); }
};

struct Design {
  std::string collective;  ///< as in Plan::collective
  uint32_t root = 0;       ///< of a broadcast
  int64_t chunks = 1;      ///< for each rank, or in all if there is a root
  int64_t lanes = 1;       ///< parts of each chunk, which thread blocks of their own send and add
  bool in_turns = false;   ///< a rank sends over one connection after the other, with the same thread blocks
  Stage up, down;          ///< an all-reduce has both
  std::vector<uint32_t> ends;  ///< by tree, the rank where it ends; empty: trees reach all ranks
};

/// Records the program of a design.
dsl::Program program_of(const std::string& name, const Network&, const Design&);

}  // namespace chorale::synthesis
