#pragma once
/// \file
/// Who reads and writes which memory.

#include <cstdint>
#include <vector>

#include "execution.hpp"

namespace chorale::host {

struct Access {
  Event event;
  uint32_t rank = 0;  ///< whose memory
  const Box* box = nullptr;
  bool writes = false;
  uint32_t at = 0;
  const ConcreteTransfer* transfer = nullptr;  ///< of which it is, in a carry
};

/// By rank and tensor, in this order: of runs that follow each other. The boxes are those of `made`.
std::vector<std::vector<Access>> accesses(const Concrete& made, uint32_t runs);

}  // namespace chorale::host
