#include "operators.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstdint>

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

namespace {

/// Returns the number of a new operator. All communicators of the process share the numbers, so a
/// communicator finds no operator of another one under them. After about two billion operators the numbers
/// begin again.
int next_number() {
  static std::atomic<uint64_t> made{0};
  return int(ncclNumOps + made.fetch_add(1, std::memory_order_relaxed) % uint64_t(INT_MAX - ncclNumOps));
}

[[noreturn]] void refuse(ncclRedOp_t op) {
  throw CallError(ncclInvalidArgument,
                  fmt::format("op {} is neither one of NCCL's nor one that the program created for this "
                              "communicator and has not destroyed",
                              int(op)));
}

}  // namespace

ncclRedOp_t CreatedOperators::add(ncclDataType_t type, const Factor& factor) {
  const std::lock_guard<std::mutex> lock(mutex_);
  int number = next_number();
  while (!created_.emplace(number, Created{type, factor}).second) number = next_number();
  return ncclRedOp_t(number);
}

void CreatedOperators::remove(ncclRedOp_t op) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (created_.erase(int(op)) == 0) refuse(op);
}

Factor CreatedOperators::factor(ncclRedOp_t op, ncclDataType_t type) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = created_.find(int(op));
  if (found == created_.end()) refuse(op);
  if (found->second.type != type) {
    throw CallError(ncclInvalidArgument,
                    fmt::format("op {} multiplies elements of {}, but the call has elements of {}", int(op),
                                type_word(found->second.type), type_word(type)));
  }
  return found->second.factor;
}

}  // namespace chorale::nccl
