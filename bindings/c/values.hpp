/// \file
/// Checks and converts callers' arguments: numbers that may not be in an enum, pointers that may be null, and
/// structs of other versions.
#pragma once

#include <chorale/executor.hpp>
#include <chorale/packet_form.hpp>
#include <chorale/types.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "chorale/chorale.h"

namespace chorale::c {

/// \throws UsageError for a number that is not in the enum
std::string_view name_of(chorale_dtype dtype);
std::string_view name_of_op(chorale_op op);
/// Returns the type as which plans move elements of `dtype`.
DType dtype_of(chorale_dtype dtype);
std::optional<PacketForm> packet_of(chorale_packet packet);
chorale_packet packet_number(const std::optional<PacketForm>& packet);
/// Returns "cpu" or "cuda"; "" if the configuration decides.
std::string backend_of(chorale_backend backend);
bool flag_of(const char* name, int32_t value);

/// \throws UsageError if it is null, if this library does not know its size, or if a value is wrong
Arguments arguments_of(const chorale_arguments* arguments);

/// \throws UsageError if the call does not fit the plan: the operator must be named, or elements would be
/// split
void check_with_plan(const chorale_arguments* arguments, const Plan& plan);

/// \throws UsageError naming a pointer that is null
const void* required(const char* name, const void* pointer);
inline const char* text(const char* name, const char* pointer) {
  return static_cast<const char*>(required(name, pointer));
}

/// Returns the place for a call's result, and sets it to 0 first.
/// \throws UsageError if it is null
template <class Value>
Value& result(const char* name, Value* at) {
  required(name, at);
  *at = Value();
  return *at;
}

/// \throws UsageError if a struct's size is smaller than its first version's
void require_size(const char* name, uint64_t size, uint64_t least);

/// Checks that the members which a newer header adds to a struct are 0, which means that they are not used.
/// \throws UsageError if any byte from `known` to `size` is not 0
void require_zeros(const char* name, const void* at, uint64_t known, uint64_t size);

/// Fills the members of `out`, except its size, which comes first and which the caller has set.
template <class Struct>
void fill(const char* name, Struct* out, Struct values) {
  required(name, out);
  require_size(name, out->struct_bytes, sizeof(Struct));
  values.struct_bytes = out->struct_bytes;
  *out = values;
}

/// Copies a text into memory that chorale_text_free() frees.
/// \throws std::bad_alloc
char* give_text(const std::string& words);

}  // namespace chorale::c
