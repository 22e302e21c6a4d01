/// \file
/// The remote endpoints of ranks of different hosts send each other these messages.
#pragma once

#include <cstdint>
#include <type_traits>

#include "../ucx/world_link.hpp"

namespace chorale::remote {

/// A Message is the header; the data are its payload. It travels as it is, because hosts are of one kind and
/// run one version.
struct Message {
  enum class Kind : uint32_t {
    data,  ///< a transfer, or a piece of one
    done   ///< all messages of this binding up to `turn` have been carried out
  };
  static constexpr uint32_t no_signal = ~uint32_t{0};

  Kind kind = Kind::data;
  uint32_t buffer = 0;  ///< as in FarPlace
  uint64_t offset = 0;
  uint64_t binding = 0;
  uint64_t turn = 0;  ///< counts, from 1, the messages that one rank sends another for one binding
  uint64_t run = 0;   ///< the sender's run
  uint64_t posted = 0;
  uint32_t signal = no_signal;  ///< the receiver's signal, to be set to `posted` after the data
  uint32_t reserved = 0;
};
static_assert(std::is_trivially_copyable_v<Message> && sizeof(Message) <= net::WorldLink::most_header);

}  // namespace chorale::remote
