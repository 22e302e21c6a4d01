#pragma once
/// \file
/// Where messages arrive.

#include <cstdint>
#include <vector>

#include "algorithm.hpp"
#include "order.hpp"

namespace chorale::msccl {

/// Where each message of a connection is put at its receiver.
struct Arrival {
  bool direct = false;  ///< at the destination of the step that receives it
  uint64_t slot = 0;    ///< else at this chunk of the receiver's scratch, where nothing else is put
};

/// By position of the connection and of the message; makes the scratch of the gpus larger by the slots.
///
/// A message may go to its destination, instead of waiting in a slot until its receiver copies it, if nobody
/// on the receiver's gpu touches the destination before the step that receives it: the sender may put it
/// there as soon as the receiver's launch has begun.
///
/// \param order  by gpu: the dependencies within it
std::vector<std::vector<Arrival>> place_messages(Algorithm&, const std::vector<Connection>&,
                                                 const std::vector<std::vector<Dependency>>& order);

}  // namespace chorale::msccl
