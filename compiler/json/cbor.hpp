#pragma once
/// \file
/// These functions read and write the bytes of CBOR (RFC 8949) that plans are made of.
///
/// A plan is the tag 55799, which no other text begins with, and a map with the keys of the JSON text; "gpus"
/// is the first. The value of "threadblocks" is tag 24 and a byte string that holds it as CBOR. A number
/// whose digits neither an integer nor a double gives back is tag 262, embedded JSON, and a byte string that
/// holds them.

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

/// Returns true if these bytes are meant as CBOR: a list, a map or a tag, none of which begins a JSON text.
inline bool recognised(std::string_view bytes) {
  return !bytes.empty() && uint8_t(bytes[0]) >= 0x80 && uint8_t(bytes[0]) < 0xe0;
}

/// Parses one item that is a plan. With `rank`, the thread blocks of the other ranks are passed over and come
/// out as an empty list. Refuses repeated keys, more than max_depth levels, and what JSON lacks.
/// \throws PlanError naming the byte
Value parse(std::string_view bytes, std::optional<uint32_t> rank);

}  // namespace chorale::json::cbor
