/// \file
/// An Offer describes one rank's buffer in an exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exports.hpp"

namespace chorale::cuda {

struct Offer {
  struct Part {
    uint64_t number = 0;  ///< Exports::number_of()
    uint64_t bytes = 0;
    Sharing sharing = Sharing::ipc;
    HandleBytes handle{};
  };

  uint64_t pointer = 0;  ///< the address in the owner's process
  uint64_t bytes = 0;    ///< 0: nothing is offered
  uint64_t offset = 0;   ///< the offset of the buffer in the first part
  std::vector<Part> parts;
  std::vector<uint64_t> freed;  ///< numbers of allocations that no longer exist

  std::vector<std::byte> to_bytes() const;
  static Offer from_bytes(std::span<const std::byte> bytes);

  std::vector<uint64_t> numbers() const;
  size_t descriptors() const;  ///< the number of parts that are shared by descriptor
};

}  // namespace chorale::cuda
