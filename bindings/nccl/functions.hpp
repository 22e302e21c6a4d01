#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace chorale::nccl {

/// The functions of functions.def, in its order.
enum class Function : unsigned {
#define CHORALE_NCCL(header, area, today, result, name, parameters, arguments, needed, check) name,
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

struct FunctionInfo {
  const char* name;
  Area area;
};

inline constexpr auto areas = std::to_array<AreaInfo>({
#define CHORALE_NCCL_AREA(name, joins, reason) {joins, reason},
#include "areas.def"
});

inline constexpr auto functions = std::to_array<FunctionInfo>({
#define CHORALE_NCCL(header, area, today, result, name, parameters, arguments, needed, check) \
  {#name, Area::area},
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
