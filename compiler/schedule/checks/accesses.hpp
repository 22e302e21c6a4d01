#pragma once

#include <cstdint>
#include <vector>

#include "execution.hpp"

namespace chorale::schedule {

struct Access {
  Event event;
  uint32_t rank = 0;  ///< the rank whose memory it is
  const Box* box = nullptr;
  bool writes = false;
  uint32_t at = 0;
  const ConcreteTransfer* transfer = nullptr;  ///< in an exchange, the transfer that makes the access
};

/// Lists the accesses of consecutive runs, by rank and then by tensor. They point to boxes of `made`.
std::vector<std::vector<Access>> accesses(const Concrete& made, uint32_t runs);

}  // namespace chorale::schedule
