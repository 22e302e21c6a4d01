#pragma once
/// \file
/// connect() pairs the two sides of each message, and dependencies() says which step waits for which within a
/// gpu.

#include <cstdint>
#include <vector>

#include "algorithm.hpp"

namespace chorale::msccl {

/// The k-th step that sends over a connection is received by the k-th that receives from it.
struct Message {
  uint32_t sent = 0, received = 0;  ///< steps
};

/// Leads from a thread block of a gpu to one of another gpu.
struct Connection {
  uint32_t from = 0, to = 0, channel = 0;
  uint32_t sender = 0, receiver = 0;  ///< thread blocks
  std::vector<Message> messages;
};

/// Returns all connections over which something is sent, in the order of their numbers. Reports what is sent
/// or received in vain, and messages whose two sides have different sizes.
std::vector<Connection> connect(const Algorithm&, Findings&);

/// `after` begins when `before`, of another thread block of its gpu, is done.
struct Dependency {
  StepRef before, after;
};

/// Returns the dependencies of a gpu, in the order of `after`. It leaves out those that follow from others
/// between the same two thread blocks, and reports those that can never be met.
std::vector<Dependency> dependencies(const Algorithm&, uint32_t gpu, Findings&);

}  // namespace chorale::msccl
