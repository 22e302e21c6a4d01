#pragma once
/// \file
/// connect() pairs the two sides of each message. dependencies() says which step of a gpu waits for which.

#include <cstdint>
#include <vector>

#include "algorithm.hpp"

namespace chorale::msccl {

/// Holds the two steps of a message: the k-th step that sends over a connection, and the k-th step that
/// receives from it.
struct Message {
  uint32_t sent = 0, received = 0;  ///< steps
};

/// Connects a thread block of one gpu to a thread block of another gpu.
struct Connection {
  uint32_t from = 0, to = 0, channel = 0;
  uint32_t sender = 0, receiver = 0;  ///< thread blocks
  std::vector<Message> messages;
};

/// Returns all connections that carry messages, in the order of their numbers. Reports messages that are only
/// sent or only received, and messages whose two sides have different sizes.
std::vector<Connection> connect(const Algorithm&, Findings&);

/// Says that `after` begins when `before` has ended. They belong to different thread blocks of one gpu.
struct Dependency {
  StepRef before, after;
};

/// Returns the dependencies of a gpu, in the order of `after`. Leaves out those that follow from others
/// between the same two thread blocks, and reports those that can never be met.
std::vector<Dependency> dependencies(const Algorithm&, uint32_t gpu, Findings&);

}  // namespace chorale::msccl
