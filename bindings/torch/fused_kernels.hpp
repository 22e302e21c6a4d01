/// \file
/// Names the functions with which the operators launch the kernels of chorale/fused, on the CPU and on CUDA.
/// So only fused_kernels.cu needs a CUDA compiler, and it needs no PyTorch.
#pragma once

#include <chorale/fused/experts.hpp>
#include <chorale/fused/gather_permute.hpp>
#include <chorale/fused/quantised.hpp>
#include <chorale/fused/rms_norm.hpp>
#include <chorale/fused/transpose.hpp>
#include <cstdint>

namespace chorale::torch_fused {

/// Holds the arguments of RmsNormAllReduce::run() and of its epilogue.
struct NormArguments {
  DType type;  ///< f32, f16 or bf16
  const void* in;
  void* residual;  ///< null: none
  const void* weight;
  float epsilon;
  uint64_t rows;
  uint32_t cols;
  DType out_type;  ///< `type`, or a code: fp8_e4m3, fp8_e5m2 or i8
  void* out;
  float* scales;   ///< for codes
  uint32_t block;  ///< columns that share a scale; 0: a row
};

/// Holds the arguments of run() of QuantisedAllReduce and of QuantisedAllGather.
struct QuantisedArguments {
  DType type;  ///< f32, f16 or bf16
  DType code;  ///< fp8_e4m3, fp8_e5m2 or i8
  const void* in;
  void* out;
  uint64_t elements;
};

/// Holds the arguments of TransposeAllToAll::run().
struct TransposeArguments {
  uint32_t element_bytes;
  const void* in;
  void* out;
  uint32_t rows, cols;
};

/// Holds the arguments of GatherPermute::run().
struct GatherArguments {
  uint32_t element_bytes;
  const void* in;
  void* out;
  const int64_t* index;
  uint64_t rows, out_rows;
  uint32_t cols;
};

/// Holds the launchers of one side. Each enqueues a kernel on a stream, a cudaStream_t; on the CPU it runs
/// the kernel. They throw what the kernel's own launcher throws, and UsageError for types without a kernel.
struct Launchers {
  void (*dispatch_32)(fused::ExpertExchange&, const fused::Dispatch<int32_t>&, void* stream);
  void (*dispatch_64)(fused::ExpertExchange&, const fused::Dispatch<int64_t>&, void* stream);
  void (*combine)(fused::ExpertExchange&, const fused::Combine&, void* stream);
  void (*norm)(fused::RmsNormAllReduce&, const NormArguments&, void* stream);
  void (*all_reduce)(fused::QuantisedAllReduce&, const QuantisedArguments&, void* stream);
  void (*all_gather)(fused::QuantisedAllGather&, const QuantisedArguments&, void* stream);
  void (*transpose)(fused::TransposeAllToAll&, const TransposeArguments&, void* stream);
  void (*gather)(fused::GatherPermute&, const GatherArguments&, void* stream);
};
extern const Launchers on_cpu;
extern const Launchers on_cuda;  ///< only where the kernels are built for CUDA

}  // namespace chorale::torch_fused
