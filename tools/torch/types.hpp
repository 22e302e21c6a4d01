/// \file
/// PyTorch's types and operators in Chorale's words.
#pragma once

#include <ATen/core/Tensor.h>

#include <chorale/types.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace chorale::torch_backend {

/// What a tensor's elements are added up as.
/// \throws c10::Error for a type that Chorale does not add up
inline DType dtype_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return DType::f32;
    case at::kHalf:
      return DType::f16;
    case at::kBFloat16:
      return DType::bf16;
    case at::kDouble:
      return DType::f64;
    case at::kInt:
      return DType::i32;
    case at::kLong:
      return DType::i64;
    case at::kByte:
    case at::kBool:
      return DType::u8;
    case at::kChar:
      return DType::i8;
    case at::kFloat8_e4m3fn:
      return DType::fp8_e4m3;
    case at::kFloat8_e5m2:
      return DType::fp8_e5m2;
    default:
      TORCH_CHECK(false, "chorale has no type for reductions of ", tensor.scalar_type(), " tensors");
  }
}

/// As torch.distributed.ReduceOp calls it.
inline const char* name_of(c10d::ReduceOp::RedOpType op) {
  switch (op) {
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

/// Of bools a sum is "any", and a product is "all".
/// \throws c10::Error for an operator that Chorale does not have
inline ReduceOp op_of(const c10d::ReduceOp& op, const at::Tensor& tensor) {
  const bool bools = tensor.scalar_type() == at::kBool;
  switch (c10d::ReduceOp::RedOpType(op)) {
    case c10d::ReduceOp::SUM:
      return bools ? ReduceOp::max : ReduceOp::sum;
    case c10d::ReduceOp::PRODUCT:
      return bools ? ReduceOp::min : ReduceOp::prod;
    case c10d::ReduceOp::MIN:
      return ReduceOp::min;
    case c10d::ReduceOp::MAX:
      return ReduceOp::max;
    case c10d::ReduceOp::AVG:
      TORCH_CHECK(!bools, "chorale has no average of bools");
      return ReduceOp::avg;
    default:
      TORCH_CHECK(false, "chorale reduces by SUM, PRODUCT, MIN, MAX and AVG only, not by ",
                  name_of(c10d::ReduceOp::RedOpType(op)));
  }
}

}  // namespace chorale::torch_backend
