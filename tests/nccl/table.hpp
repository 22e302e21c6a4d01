#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "bindings/nccl/abi.hpp"
#include "bindings/nccl/functions.hpp"

// This header declares the functions of libnccl.so.2 as a program sees them, and makes arguments for calls of
// all of them.
using namespace chorale::nccl;
#define CHORALE_NCCL(header, area, today, result, name, parameters, arguments, needed, check, ...) \
  extern "C" result name parameters; \
  extern "C" result p##name parameters;
#include "bindings/nccl/functions.def"

namespace nccl_tests {

/// Returns the argument at a place of a call. It differs from those at other places. Pointers are not null,
/// and lead nowhere. Numbers fall, so that a rank is below the number of ranks before it.
template <class Type>
Type argument(size_t place) {
  if constexpr (std::is_pointer_v<Type>) {
    return reinterpret_cast<Type>(0x1000 * (place + 1));
  } else if constexpr (std::is_integral_v<Type> || std::is_enum_v<Type>) {
    return Type(100 - place);
  } else {
    std::array<char, sizeof(Type)> bytes;
    bytes.fill(char(place + 1));
    Type made;
    std::memcpy(&made, bytes.data(), sizeof made);
    return made;
  }
}

/// Returns what the fake NCCL returns from the function at this place of the table.
template <class Result>
Result result_of(size_t place) {
  if constexpr (std::is_same_v<Result, ncclTeam_t>) {
    return {int(place), 1, 2};
  } else if constexpr (std::is_same_v<Result, const char*>) {
    return "text of the fake";
  } else if constexpr (!std::is_void_v<Result>) {
    return Result(100 + place);
  }
}

/// Writes a call with all bytes of its arguments.
template <class... Arguments>
std::string written(const char* name, const Arguments&... arguments) {
  std::string text = name;
  [[maybe_unused]] const auto add = [&](std::span<const std::byte> bytes) {
    constexpr const char* digits = "0123456789abcdef";
    text += ' ';
    for (const std::byte byte : bytes) (text += digits[size_t(byte) / 16]) += digits[size_t(byte) % 16];
  };
  (add(std::as_bytes(std::span<const Arguments>(&arguments, 1))), ...);
  return text;
}

/// Calls `visit(place, name, today, arguments, needed, function, twin)` for each row of the table. The third
/// to fifth are the texts of the row.
template <class Visit>
void for_each_function(const Visit& visit) {
  size_t place = 0;
#define CHORALE_NCCL(header, area, today, result, name, parameters, arguments, needed, check, ...) \
  visit(place++, #name, #today, #arguments, #needed, &name, &p##name);
#include "bindings/nccl/functions.def"
}

}  // namespace nccl_tests
