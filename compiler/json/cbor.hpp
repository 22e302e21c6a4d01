#pragma once
/// \file
/// Plans can be stored as CBOR (RFC 8949). These functions read and write the bytes.
///
/// A plan is tag 55799, with which no other text begins, and a map with the keys of the JSON text. "gpus" is
/// the first key. The value of "threadblocks" is tag 24 and a byte string that holds the value as CBOR. A
/// number that neither an integer nor a double can represent exactly is tag 262 (embedded JSON) and a byte
/// string with its digits.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "json.hpp"

namespace chorale::json::cbor {

enum class Major : uint8_t { number, negative, bytes, text, list, map, tag, other };

constexpr uint64_t self_described = 55799, embedded_item = 24, embedded_json = 262;  // tags
constexpr uint8_t begin_list = 0x9f, end = 0xff;                                     // of indefinite length
constexpr std::string_view gpus_key = "gpus", embedded_key = "threadblocks";

/// Returns the digits that a reader gets from a double.
std::string digits_of(double);

/// Returns whether these bytes are CBOR: they begin with a list, a map or a tag, and no JSON text begins so.
inline bool recognised(std::string_view bytes) {
  return !bytes.empty() && uint8_t(bytes[0]) >= 0x80 && uint8_t(bytes[0]) < 0xe0;
}

/// Parses the only item, which must be a plan. With `rank`, skips the thread blocks of the other ranks and
/// returns empty lists for them. Refuses repeated keys, more than max_depth levels, and everything that JSON
/// lacks.
/// \throws PlanError naming the byte
Value parse(std::string_view bytes, std::optional<uint32_t> rank);

}  // namespace chorale::json::cbor
