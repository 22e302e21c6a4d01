#pragma once
/// \file
/// accesses() lists which steps read and write which memory.

#include <cstdint>
#include <vector>

#include "execution.hpp"

namespace chorale::host {

struct Access {
  Event event;
  uint32_t rank = 0;  ///< the rank that has the memory
  const Box* box = nullptr;
  bool writes = false;
  uint32_t at = 0;
  const ConcreteTransfer* transfer = nullptr;  ///< the transfer that makes it, in an SM copy
};

/// Lists the accesses of runs that follow each other, by rank and then by tensor. They point to boxes of
/// `made`.
std::vector<std::vector<Access>> accesses(const Concrete& made, uint32_t runs);

}  // namespace chorale::host
