#pragma once

#include <cstdint>
#include <type_traits>

#include "executor/ucx/world_link.hpp"

namespace chorale::remote {

/// Represents the header of a message; the data is its payload. It is sent without conversion, because all
/// hosts have the same architecture and version.
struct Message {
  enum class Kind : uint32_t {
    data,  ///< a transfer, or a piece of one
    done   ///< the receiver has carried out all messages of this binding up to `turn`
  };
  static constexpr uint32_t no_signal = ~uint32_t{0};

  Kind kind = Kind::data;
  uint32_t buffer = 0;  ///< as in FarPlace
  uint64_t offset = 0;
  uint64_t binding = 0;
  uint64_t turn = 0;  ///< the message's number, from 1, among those of one rank to another for one binding
  uint64_t run = 0;   ///< the number of the sender's run
  uint64_t posted = 0;
  uint32_t signal = no_signal;  ///< the receiver's signal that is set to `posted` after the data
  uint32_t reserved = 0;
};
static_assert(std::is_trivially_copyable_v<Message> && sizeof(Message) <= ucx::WorldLink::most_header);

}  // namespace chorale::remote
