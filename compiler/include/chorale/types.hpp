#pragma once
// Element types and reduction operations, as plans, checks, the executor and kernels name them; types.def
// lists them. C++17, no CUDA headers: host code of every folder and device code include this one file.

#include <cstddef>
#include <cstdint>

namespace chorale {

/// Type of one element of a buffer: DType::f32 and the others of types.def.
enum class DType : uint8_t {
#define CHORALE_DTYPE(name, bytes) name,
#include "chorale/types.def"
};

/// How elements of the same index are combined: ReduceOp::sum and the others of types.def. `avg` is a sum
/// that is divided once, when all addends are in.
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

/// Bytes of one element; 0 for a value that is no DType.
constexpr size_t dtype_size(DType type) {
  switch (type) {
#define CHORALE_DTYPE(name, bytes) \
  case DType::name: \
    return bytes;
#include "chorale/types.def"
  }
  return 0;
}

/// The name used in plans, on the command line and in messages: the enumerator's own.
constexpr const char* dtype_name(DType type) {
  switch (type) {
#define CHORALE_DTYPE(name, bytes) \
  case DType::name: \
    return #name;
#include "chorale/types.def"
  }
  return "?";
}

/// As dtype_name.
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
