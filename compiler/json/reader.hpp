#pragma once
/// \file
/// The two source files of the plan reader share these declarations.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "fields.hpp"

namespace chorale::json {

/// Appends the operations of a list to a thread block of rank `rank`.
void read_ops(const Node& list, Plan&, ThreadBlock&, uint32_t rank);

inline ChannelType channel_type(const Node& node) {
  return all_channel_types[node.choice(std::span(channel_type_names).subspan(1))];
}
/// Reads a type of channels between two ranks.
inline ChannelType signalled_type(const Node& node) {
  static constexpr auto words = [] {
    std::array<std::string_view, signalled_types.size()> all;
    for (size_t at = 0; at < all.size(); ++at) all[at] = channel_type_names[size_t(signalled_types[at])];
    return all;
  }();
  return signalled_types[node.choice(words)];
}
inline BufferKind buffer_kind(const Node& node) { return BufferKind(node.choice(buffer_letters)); }

}  // namespace chorale::json
