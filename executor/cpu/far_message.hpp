/// \file
/// The proxies of ranks of different hosts send each other these messages.
#pragma once

#include <cstdint>
#include <type_traits>

#include "../interpreter/image.hpp"
#include "../net/world_link.hpp"
#include "machine.hpp"
#include "port.hpp"

namespace chorale::cpu {

/// The header of a message. It travels as it is, because hosts are of one kind and run one version.
struct FarMessage {
  enum class Kind : uint32_t {
    data,  ///< a Trigger, and the data that it moves
    done   ///< all messages of a binding up to `turn` have been carried out
  };

  Kind kind = Kind::data;
  uint64_t binding = 0;  ///< the number that all ranks give the binding
  uint64_t turn = 0;     ///< counts, from 1, the messages that one rank sends another for one binding
  uint64_t epoch = 0;    ///< the epoch of the run that it belongs to
  Action action{};
  uint32_t signal = image::Channel::none;  ///< the receiver's signal, to be added to after the data
  image::Place place;                      ///< at the receiver; `buffer` is a kind of its own buffers
  image::Range range;                      ///< a range of `place`
};
static_assert(std::is_trivially_copyable_v<FarMessage> && sizeof(FarMessage) <= net::WorldLink::most_header);

/// Returns the trigger's range of its source as one row of bytes. Its length is in nominal bytes.
net::Payload gather(Machine& machine, const Trigger& trigger);

/// Writes the bytes where the message says: as they are, or as packets of the machine's run.
void scatter(Machine& machine, const FarMessage& message, const net::Payload& payload);

}  // namespace chorale::cpu
