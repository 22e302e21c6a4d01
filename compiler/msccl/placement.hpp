#pragma once
/// \file
/// place_messages() decides where messages arrive.

#include <cstdint>
#include <vector>

#include "algorithm.hpp"
#include "connections.hpp"

namespace chorale::msccl {

/// Says where a message of a connection is put at its receiver.
struct Arrival {
  bool direct = false;  ///< at the destination of the step that receives it
  uint64_t slot = 0;    ///< if not direct: at this chunk of the receiver's scratch, used only for it
};

/// Returns the arrivals by position of the connection and of the message. It enlarges the scratch of the gpus
/// by the slots.
///
/// Normally a message waits in a slot until its receiver copies it. It may go directly to its destination if
/// all other steps of the receiver's gpu that access the destination come after the one that receives it, or
/// have ended when it is sent.
///
/// \param dependencies  by gpu
std::vector<std::vector<Arrival>> place_messages(Algorithm&, const std::vector<Connection>&,
                                                 const std::vector<std::vector<Dependency>>& dependencies);

}  // namespace chorale::msccl
