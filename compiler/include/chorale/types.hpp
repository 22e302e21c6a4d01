#pragma once
// Element types and reduction operations, as plans, checks, the executor and kernels name them. C++17, no
// CUDA headers: host code of every folder and device code include this one file.

#include <cstddef>
#include <cstdint>

namespace chorale {

/// Type of one element of a buffer.
enum class DType : uint8_t { f32, f16, bf16, f64, i32, u32, i64, u8, i8, fp8_e4m3, fp8_e5m2 };

/// How elements of the same index are combined. `avg` is a sum that is divided once, when all addends are in.
enum class ReduceOp : uint8_t { sum, min, max, prod, avg };

inline constexpr DType all_dtypes[] = {DType::f32, DType::f16,      DType::bf16,    DType::f64,
                                       DType::i32, DType::u32,      DType::i64,     DType::u8,
                                       DType::i8,  DType::fp8_e4m3, DType::fp8_e5m2};
inline constexpr ReduceOp all_reduce_ops[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::prod,
                                              ReduceOp::avg};

/// Bytes of one element; 0 for a value that is no DType.
constexpr size_t dtype_size(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::u8:
    case DType::i8:
    case DType::fp8_e4m3:
    case DType::fp8_e5m2:
      return 1;
  }
  return 0;
}

/// The name used in plans, on the command line and in messages: the enumerator's own.
constexpr const char* dtype_name(DType type) {
  switch (type) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::f64:
      return "f64";
    case DType::i32:
      return "i32";
    case DType::u32:
      return "u32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
    case DType::i8:
      return "i8";
    case DType::fp8_e4m3:
      return "fp8_e4m3";
    case DType::fp8_e5m2:
      return "fp8_e5m2";
  }
  return "?";
}

/// As dtype_name.
constexpr const char* reduce_op_name(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      return "max";
    case ReduceOp::prod:
      return "prod";
    case ReduceOp::avg:
      return "avg";
  }
  return "?";
}

}  // namespace chorale
