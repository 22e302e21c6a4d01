/// \file
/// Translates PyTorch's types and operators into Chorale's.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <chorale/other_names.hpp>
#include <string>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace chorale::torch_backend {

/// Returns Chorale's name for a tensor's type: "f32" for Float.
inline std::string name_of(const at::Tensor& tensor) {
  return name_here(c10::toString(tensor.scalar_type()));
}

/// Returns the operator's name in torch.distributed.ReduceOp.
inline const char* name_of(c10d::ReduceOp::RedOpType op) {
  switch (op) {
    case c10d::ReduceOp::SUM:
      return "SUM";
    case c10d::ReduceOp::PRODUCT:
      return "PRODUCT";
    case c10d::ReduceOp::MIN:
      return "MIN";
    case c10d::ReduceOp::MAX:
      return "MAX";
    case c10d::ReduceOp::AVG:
      return "AVG";
    case c10d::ReduceOp::BAND:
      return "BAND";
    case c10d::ReduceOp::BOR:
      return "BOR";
    case c10d::ReduceOp::BXOR:
      return "BXOR";
    case c10d::ReduceOp::PREMUL_SUM:
      return "PREMUL_SUM";
    default:
      return "another operator";
  }
}

/// Returns the type that Chorale uses to reduce a tensor's elements.
/// \throws c10::Error for a type that Chorale does not reduce
inline DType dtype_of(const at::Tensor& tensor) {
  try {
    return carrier_of(name_of(tensor));
  } catch (const NoSuchReduction& none) {
    TORCH_CHECK(false, "chorale: ", none.what());
  }
}

/// Returns the operator that reduces elements of dtype_of(). For bools a sum is "any", and a product is
/// "all".
/// \throws c10::Error for a reduction that Chorale does not have
inline ReduceOp op_of(const c10d::ReduceOp& op, const at::Tensor& tensor) {
  try {
    const StandsFor found = stands_for(name_of(tensor), name_here(name_of(c10d::ReduceOp::RedOpType(op))));
    TORCH_INTERNAL_ASSERT(found.dtype == dtype_of(tensor));
    return found.op;
  } catch (const NoSuchReduction& none) {
    TORCH_CHECK(false, "chorale: ", none.what());
  }
}

}  // namespace chorale::torch_backend
