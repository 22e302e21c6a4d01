#pragma once
/// \file
/// The two halves of the plan reader share these declarations.

#include <cstdint>
#include <string_view>

#include "fields.hpp"

namespace chorale::json {

/// Appends the operations of a list to a thread block of rank `rank`.
void read_ops(const Node& list, Plan&, ThreadBlock&, uint32_t rank);

/// Lists the words for channels between two ranks, by ChannelType less one.
inline constexpr std::string_view point_to_point[] = {"memory", "port"};
inline constexpr std::string_view channel_words[] = {"memory", "port", "switch"};

inline ChannelType channel_type(const Node& node) { return ChannelType(1 + node.choice(channel_words)); }
inline ChannelType point_to_point_type(const Node& node) {
  return ChannelType(1 + node.choice(point_to_point));
}
inline BufferKind buffer_kind(const Node& node) { return BufferKind(node.choice(buffer_letters)); }

}  // namespace chorale::json
