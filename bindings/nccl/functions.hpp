#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace chorale::nccl {

/// The functions of functions.def, in its order.
enum class Function : unsigned {
#define CHORALE_NCCL(header, area, today, result, name, ...) name,
#include "functions.def"
};

/// The subjects of areas.def, in its order.
enum class Area : unsigned {
#define CHORALE_NCCL_AREA(name, joins, reason) name,
#include "areas.def"
};

struct AreaInfo {
  bool joins_groups;
  std::string_view reason;
};

/// Says which buffers of a call a rank uses. functions.def explains the words.
enum class Buffers : unsigned char { none, both, root_sends, root_receives, send, receive };

struct FunctionInfo {
  const char* name;
  Area area;
  std::string_view collective;  ///< Chorale's word; "" if no plan serves the call
  Buffers buffers;

  /// Returns whether a call names a rank: a root, or the peer of a message.
  constexpr bool has_root() const { return buffers != Buffers::none && buffers != Buffers::both; }
  /// Returns whether the call consists of messages from rank to rank.
  constexpr bool sends_messages() const { return has_root() && collective.empty(); }
};

inline constexpr auto areas = std::to_array<AreaInfo>({
#define CHORALE_NCCL_AREA(name, joins, reason) {joins, reason},
#include "areas.def"
});

inline constexpr auto functions = std::to_array<FunctionInfo>({
#define CHORALE_NCCL(header, area, today, result, name, parameters, arguments, needed, check, collective, \
                     buffers) \
  {#name, Area::area, #collective == std::string_view("none") ? "" : #collective, Buffers::buffers},
#include "functions.def"
});

constexpr const FunctionInfo& info(Function function) { return functions[size_t(function)]; }
constexpr const AreaInfo& info(Area area) { return areas[size_t(area)]; }

/// Returns the function of this name; nothing if the table has none.
constexpr std::optional<Function> function_of(std::string_view name) {
  for (size_t place = 0; place < functions.size(); ++place) {
    if (functions[place].name == name) return Function(place);
  }
  return std::nullopt;
}

}  // namespace chorale::nccl
