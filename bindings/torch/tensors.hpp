/// \file
/// Converts tensors to the form of a collective's inputs and outputs.
#pragma once

#include <ATen/core/Tensor.h>

#include <chorale/collective.hpp>
#include <cstdint>
#include <string>

namespace chorale::torch_backend {

/// Says into how many parts, one for each rank, a collective's input and output are divided; 1 if they are
/// not divided.
struct Parts {
  int64_t in, out;
};
inline Parts parts_of(const std::string& collective, int ranks) {
  const CollectiveInfo& info = collective_info(collective);
  return {int64_t(info.input_parts(uint64_t(ranks))), int64_t(info.output_parts(uint64_t(ranks)))};
}

/// Calls `run` with the elements of a tensor as a row that it may change. For a dense tensor the row is the
/// tensor's memory, so all ranks need tensors of the same strides, as with NCCL. Otherwise the row is a copy,
/// which is copied back afterwards.
template <class Run>
void in_a_row(const at::Tensor& tensor, const Run& run) {
  if (tensor.is_non_overlapping_and_dense()) return run(tensor.as_strided({tensor.numel()}, {1}));
  const at::Tensor row = tensor.contiguous().view(-1);
  run(row);
  at::Tensor(tensor).copy_(row.view(tensor.sizes()));
}

inline void check_alike(const std::string& what, const at::Tensor& in, const at::Tensor& out) {
  TORCH_CHECK(in.is_contiguous() && out.is_contiguous(), "chorale: ", what, " needs contiguous tensors");
  TORCH_CHECK(in.scalar_type() == out.scalar_type() && in.device() == out.device(), "chorale: ", what, " of ",
              in.scalar_type(), " on ", in.device().str(), " into ", out.scalar_type(), " on ",
              out.device().str());
  TORCH_CHECK(in.is_cpu() || in.is_cuda(), "chorale: tensors are on the CPU or on CUDA, not on ",
              in.device().str());
}

}  // namespace chorale::torch_backend
