#include "operators.hpp"

#include <fmt/format.h>

#include <array>

#include "chorale/other_names.hpp"
#include "outcome.hpp"

namespace chorale::nccl {
namespace {

/// Chorale's words for NCCL's types and operators, by their values.
constexpr auto types = std::to_array<const char*>(
    {"i8", "u8", "i32", "u32", "i64", "u64", "f16", "f32", "f64", "bf16", "fp8_e4m3", "fp8_e5m2"});
constexpr auto operators = std::to_array<const char*>({"sum", "prod", "max", "min", "avg"});
static_assert(types.size() == size_t(ncclNumTypes));
static_assert(operators.size() == size_t(ncclNumOps));

}  // namespace

const char* type_word(ncclDataType_t type) {
  if (type >= 0 && type < ncclNumTypes) return types[size_t(type)];
  throw CallError(ncclInvalidArgument, fmt::format("datatype {} does not exist", int(type)));
}

uint64_t element_bytes(ncclDataType_t type) { return chorale::element_bytes(type_word(type)); }

Reduction reduction_of(ncclDataType_t type, ncclRedOp_t op) {
  const StandsFor found = stands_for(type_word(type), operators[size_t(op)]);
  return {found.dtype, found.op};
}

}  // namespace chorale::nccl
