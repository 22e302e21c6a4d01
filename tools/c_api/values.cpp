#include "values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <new>

#include "chorale/error.hpp"

namespace chorale::c {
namespace {

// By number, from 1. The numbers stay as they are whatever becomes of the order in types.def.
constexpr DType dtypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64,      DType::i32,     DType::u32,
                            DType::i64, DType::u8,  DType::i8,   DType::fp8_e4m3, DType::fp8_e5m2};
static_assert(std::size(dtypes) == std::size(all_dtypes), "a type of types.def has no number in chorale.h");
static_assert(dtypes[CHORALE_F32 - 1] == DType::f32 && dtypes[CHORALE_F16 - 1] == DType::f16 &&
              dtypes[CHORALE_BF16 - 1] == DType::bf16 && dtypes[CHORALE_F64 - 1] == DType::f64 &&
              dtypes[CHORALE_I32 - 1] == DType::i32 && dtypes[CHORALE_U32 - 1] == DType::u32 &&
              dtypes[CHORALE_I64 - 1] == DType::i64 && dtypes[CHORALE_U8 - 1] == DType::u8 &&
              dtypes[CHORALE_I8 - 1] == DType::i8 && dtypes[CHORALE_FP8_E4M3 - 1] == DType::fp8_e4m3 &&
              dtypes[CHORALE_FP8_E5M2 - 1] == DType::fp8_e5m2);

constexpr ReduceOp ops[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::prod, ReduceOp::avg};
static_assert(std::size(ops) == std::size(all_reduce_ops),
              "an operator of types.def has no number in chorale.h");
static_assert(ops[CHORALE_SUM - 1] == ReduceOp::sum && ops[CHORALE_MIN - 1] == ReduceOp::min &&
              ops[CHORALE_MAX - 1] == ReduceOp::max && ops[CHORALE_PROD - 1] == ReduceOp::prod &&
              ops[CHORALE_AVG - 1] == ReduceOp::avg);

constexpr PacketForm packets[] = {PacketForm::ll8, PacketForm::ll16, PacketForm::ll128};
static_assert(std::size(packets) == std::size(packet_form_names),
              "a form of packets has no number in chorale.h");
static_assert(packets[CHORALE_LL8 - 1] == PacketForm::ll8 && packets[CHORALE_LL16 - 1] == PacketForm::ll16 &&
              packets[CHORALE_LL128 - 1] == PacketForm::ll128);

/// The one that has this number.
template <class Value, size_t count>
Value numbered(const Value (&values)[count], const char* what, int32_t number, const char* words) {
  if (number < 1 || size_t(number) > count)
    throw UsageError(fmt::format("{} {} is none of {}", what, number, words));
  return values[number - 1];
}

}  // namespace

DType dtype_of(chorale_dtype dtype) {
  return numbered(dtypes, "dtype", dtype, "CHORALE_F32 (1) to CHORALE_FP8_E5M2 (11)");
}

std::optional<ReduceOp> op_of(chorale_op op) {
  if (op == CHORALE_OP_OF_PLAN) return std::nullopt;
  return numbered(ops, "op", op, "CHORALE_OP_OF_PLAN (0) to CHORALE_AVG (5)");
}

std::optional<PacketForm> packet_of(chorale_packet packet) {
  if (packet == CHORALE_PACKET_OF_CONFIG) return std::nullopt;
  return numbered(packets, "packet", packet, "CHORALE_PACKET_OF_CONFIG (0) to CHORALE_LL128 (3)");
}

chorale_packet packet_number(const std::optional<PacketForm>& packet) {
  if (!packet) return CHORALE_PACKET_OF_CONFIG;
  return chorale_packet(std::find(std::begin(packets), std::end(packets), *packet) - std::begin(packets)) + 1;
}

std::string backend_of(chorale_backend backend) {
  if (backend == CHORALE_BACKEND_OF_CONFIG) return "";
  static const std::string names[] = {"cpu", "cuda"};
  return numbered(names, "backend", backend,
                  "CHORALE_BACKEND_OF_CONFIG (0), CHORALE_CPU (1) and CHORALE_CUDA (2)");
}

bool flag_of(const char* name, int32_t value) {
  if (value != 0 && value != 1) throw UsageError(fmt::format("{} is {}: neither 0 nor 1", name, value));
  return value == 1;
}

Arguments arguments_of(const chorale_arguments* arguments) {
  required("arguments", arguments);
  require_size("arguments", arguments->struct_bytes, sizeof *arguments);
  require_zeros("arguments", arguments, sizeof *arguments, arguments->struct_bytes);
  if (arguments->reserved != 0)
    throw UsageError("'reserved' of 'arguments' is not 0: set the struct to CHORALE_ARGUMENTS");
  return {.in = arguments->in,
          .out = arguments->out,
          .bytes = arguments->bytes,
          .dtype = dtype_of(arguments->dtype),
          .op = op_of(arguments->op),
          .packet = packet_of(arguments->packet)};
}

const void* required(const char* name, const void* pointer) {
  if (!pointer) throw UsageError(fmt::format("'{}' is null", name));
  return pointer;
}

void require_size(const char* name, uint64_t size, uint64_t least) {
  constexpr uint64_t most = 4096;  // no version will be so large: it was not set
  if (size < least || size > most) {
    throw UsageError(
        fmt::format("struct_bytes of '{}' is {}: it should be its sizeof, {} here", name, size, least));
  }
}

void require_zeros(const char* name, const void* at, uint64_t known, uint64_t size) {
  const char* const bytes = static_cast<const char*>(at);
  if (std::any_of(bytes + known, bytes + size, [](char byte) { return byte != 0; })) {
    throw UsageError(
        fmt::format("'{}' has a value in members that this library does not know: it has {} bytes of the {}",
                    name, known, size));
  }
}

char* give_text(const std::string& words) {
  char* const copy = static_cast<char*>(std::malloc(words.size() + 1));
  if (!copy) throw std::bad_alloc();
  std::memcpy(copy, words.c_str(), words.size() + 1);
  return copy;
}

}  // namespace chorale::c

void chorale_text_free(char* text) { std::free(text); }
