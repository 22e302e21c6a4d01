#pragma once
/// \file
/// A rank reaches another over a channel. This header says what each type of channel can do.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace chorale {

/// Names a type of channel. Each is a row of channels.def.
enum class ChannelType : uint8_t {
  none,
#define CHORALE_CHANNEL(name, word, ends, mover) name,
#include "chorale/channels.def"
};

inline constexpr ChannelType all_channel_types[] = {
#define CHORALE_CHANNEL(name, word, ends, mover) ChannelType::name,
#include "chorale/channels.def"
};

/// Holds the words of plan files, by ChannelType.
inline constexpr std::string_view channel_type_names[] = {
    "none",
#define CHORALE_CHANNEL(name, word, ends, mover) word,
#include "chorale/channels.def"
};

/// Describes one row of channels.def, which explains the columns.
struct ChannelInfo {
  enum class Ends : uint8_t { none, two, group };
  enum class MovedBy : uint8_t { none, threads, proxy, fabric };
  Ends ends = Ends::none;
  MovedBy moved_by = MovedBy::none;
};

/// Holds the rows of channels.def, by ChannelType.
inline constexpr ChannelInfo channel_table[] = {
    {},
#define CHORALE_CHANNEL(name, word, ends, mover) {ChannelInfo::Ends::ends, ChannelInfo::MovedBy::mover},
#include "chorale/channels.def"
};

/// Returns whether channels of this type connect two ranks and carry signals.
constexpr bool has_signals(ChannelType type) {
  return channel_table[size_t(type)].ends == ChannelInfo::Ends::two;
}
/// Returns whether channels of this type connect rank groups. They carry no signals.
constexpr bool is_switched(ChannelType type) {
  return channel_table[size_t(type)].ends == ChannelInfo::Ends::group;
}
/// Returns whether the threads of a thread block load and store the peer's memory.
constexpr bool is_direct(ChannelType type) {
  return channel_table[size_t(type)].moved_by == ChannelInfo::MovedBy::threads;
}
/// Returns whether a proxy moves the data and sets the signals.
constexpr bool has_proxy(ChannelType type) {
  return channel_table[size_t(type)].moved_by == ChannelInfo::MovedBy::proxy;
}

// An operand on a switch names a channel but no channel type, so there may be only one switched type.
static_assert(std::count_if(std::begin(all_channel_types), std::end(all_channel_types), is_switched) == 1);

/// Lists the types with signals.
inline constexpr auto signalled_types = [] {
  constexpr auto count =
      std::count_if(std::begin(all_channel_types), std::end(all_channel_types), has_signals);
  std::array<ChannelType, size_t(count)> types{};
  std::copy_if(std::begin(all_channel_types), std::end(all_channel_types), types.begin(), has_signals);
  return types;
}();
static_assert(std::is_partitioned(signalled_types.begin(), signalled_types.end(), is_direct));

/// Returns the position of a type in signalled_types.
constexpr size_t signalled_position(ChannelType type) {
  return size_t(std::find(signalled_types.begin(), signalled_types.end(), type) - signalled_types.begin());
}

}  // namespace chorale
