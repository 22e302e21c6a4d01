/// \file
/// What the proxies of ranks of different hosts say to each other.
#pragma once

#include <cstdint>
#include <type_traits>

#include "../interpreter/image.hpp"
#include "../net/world_link.hpp"
#include "machine.hpp"
#include "port.hpp"

namespace chorale::cpu {

/// The header of a message. Hosts are of one kind and run one version: it travels as it is.
struct FarMessage {
  enum class Kind : uint32_t {
    data,  ///< a Trigger, and what it moves
    done   ///< all messages of a binding up to `turn` have been carried out
  };

  Kind kind = Kind::data;
  uint64_t binding = 0;  ///< by the number that all ranks give it
  uint64_t turn = 0;     ///< of those that one rank sends another for one binding, from 1
  uint64_t epoch = 0;    ///< of the run that it belongs to
  Action action{};
  uint32_t signal = image::Channel::none;  ///< the receiver's, to be added to behind the data
  image::Place place;                      ///< at the receiver; `buffer` is a kind of its own buffers
  image::Range range;                      ///< of `place`
};
static_assert(std::is_trivially_copyable_v<FarMessage> && sizeof(FarMessage) <= net::WorldLink::most_header);

/// The bytes of the trigger's range of its source, in nominal bytes, one behind the other.
net::Payload gather(Machine& machine, const Trigger& trigger);

/// Puts them where the message says: as they are, or as packets of the machine's run.
void scatter(Machine& machine, const FarMessage& message, const net::Payload& payload);

}  // namespace chorale::cpu
