#pragma once
// This header names the element types and reduction operators for plans, checks, the executor and kernels;
// types.def lists them. Host code of every folder and device code include it, so it is C++17 without CUDA
// headers.

#include <cstddef>
#include <cstdint>

namespace chorale {

/// Names the type of one element of a buffer: DType::f32 and the others of types.def.
enum class DType : uint8_t {
#define CHORALE_DTYPE(name, bytes) name,
#include "chorale/types.def"
};

/// Says how elements of the same index are combined: ReduceOp::sum and the others of types.def. `avg` is a
/// sum that is divided once, after all addends are in.
enum class ReduceOp : uint8_t {
#define CHORALE_REDUCE_OP(name) name,
#include "chorale/types.def"
};

inline constexpr DType all_dtypes[] = {
#define CHORALE_DTYPE(name, bytes) DType::name,
#include "chorale/types.def"
};
inline constexpr ReduceOp all_reduce_ops[] = {
#define CHORALE_REDUCE_OP(name) ReduceOp::name,
#include "chorale/types.def"
};

/// Returns the bytes of one element; 0 for a value that is no DType.
constexpr size_t dtype_size(DType type) {
  switch (type) {
#define CHORALE_DTYPE(name, bytes) \
  case DType::name: \
    return bytes;
#include "chorale/types.def"
  }
  return 0;
}

/// Returns the name used in plans, on the command line and in messages. It is the enumerator's name.
constexpr const char* dtype_name(DType type) {
  switch (type) {
#define CHORALE_DTYPE(name, bytes) \
  case DType::name: \
    return #name;
#include "chorale/types.def"
  }
  return "?";
}

/// Returns the name of an operator, which is the enumerator's name.
constexpr const char* reduce_op_name(ReduceOp op) {
  switch (op) {
#define CHORALE_REDUCE_OP(name) \
  case ReduceOp::name: \
    return #name;
#include "chorale/types.def"
  }
  return "?";
}

}  // namespace chorale
