#include "values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

#include "chorale/error.hpp"
#include "chorale/layout.hpp"
#include "chorale/other_names.hpp"

namespace chorale::c {
namespace {

// Lists the names by number, from 1. The numbers do not change when the order in types.def does.
constexpr std::string_view dtypes[] = {"f32",  "f16", "bf16", "f64",      "i32",      "u32",
                                       "i64",  "u8",  "i8",   "fp8_e4m3", "fp8_e5m2", "u64",
                                       "bool", "c32", "c64",  "c128",     "i16",      "u16"};
constexpr size_t own_dtypes = CHORALE_U64;
static_assert(own_dtypes == std::size(all_dtypes), "a type of types.def has no number in chorale.h");
static_assert(std::size(dtypes) == CHORALE_U16);

constexpr std::string_view ops[] = {"sum", "min", "max", "prod", "avg", "band", "bor", "bxor", "premul_sum"};
constexpr size_t own_ops = CHORALE_AVG;
static_assert(own_ops == std::size(all_reduce_ops), "an operator of types.def has no number in chorale.h");
static_assert(std::size(ops) == CHORALE_PREMUL_SUM);

constexpr PacketForm packets[] = {PacketForm::ll8, PacketForm::ll16, PacketForm::ll128};
static_assert(std::size(packets) == std::size(packet_form_names),
              "a form of packets has no number in chorale.h");
static_assert(packets[CHORALE_LL8 - 1] == PacketForm::ll8 && packets[CHORALE_LL16 - 1] == PacketForm::ll16 &&
              packets[CHORALE_LL128 - 1] == PacketForm::ll128);

/// Returns the value that has this number.
template <class Value, size_t count>
Value numbered(const Value (&values)[count], const char* what, int32_t number, const char* words) {
  if (number < 1 || size_t(number) > count)
    throw UsageError(fmt::format("{} {} is not one of {}", what, number, words));
  return values[number - 1];
}

}  // namespace

std::string_view name_of(chorale_dtype dtype) {
  return numbered(dtypes, "dtype", dtype, "CHORALE_F32 (1) to CHORALE_U16 (18)");
}

std::string_view name_of_op(chorale_op op) {
  return numbered(ops, "op", op, "CHORALE_OP_OF_PLAN (0) to CHORALE_PREMUL_SUM (9)");
}

DType dtype_of(chorale_dtype dtype) { return carrier_of(name_of(dtype)); }

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
  Arguments call{.in = arguments->in,
                 .out = arguments->out,
                 .bytes = arguments->bytes,
                 .dtype = dtype_of(arguments->dtype),
                 .packet = packet_of(arguments->packet)};
  if (arguments->op != CHORALE_OP_OF_PLAN) {
    const StandsFor reduction = stands_for(name_of(arguments->dtype), name_of_op(arguments->op));
    call.dtype = reduction.dtype;
    call.op = reduction.op;
  }
  return call;
}

void check_with_plan(const chorale_arguments* arguments, const Plan& plan) {
  const std::string_view type = name_of(arguments->dtype);
  if (arguments->op == CHORALE_OP_OF_PLAN) check_operator_of_plan(plan, type);
  const uint64_t bytes = element_bytes(type), parts = message_segments(plan);
  if (arguments->bytes % (bytes * parts) == 0 || names_dtype(type)) return;
  throw UsageError(fmt::format("plan '{}': {} bytes are no multiple of {}, which {} of elements of {} needs",
                               plan.name, arguments->bytes, bytes * parts,
                               parts == 1 ? "a message" : fmt::format("{} parts", parts), type));
}

const void* required(const char* name, const void* pointer) {
  if (!pointer) throw UsageError(fmt::format("'{}' is null", name));
  return pointer;
}

void require_size(const char* name, uint64_t size, uint64_t least) {
  constexpr uint64_t most = 4096;  // no version will be so large, so a larger size was never set
  if (size < least || size > most) {
    throw UsageError(fmt::format("struct_bytes of '{}' is {}: set it to sizeof of the struct, {} here", name,
                                 size, least));
  }
}

void require_zeros(const char* name, const void* at, uint64_t known, uint64_t size) {
  const char* const bytes = static_cast<const char*>(at);
  if (std::any_of(bytes + known, bytes + size, [](char byte) { return byte != 0; })) {
    throw UsageError(
        fmt::format("'{}' sets members that this library does not know: the library knows {} bytes of the {}",
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
