/// \file
/// Defines the launchers of a side, by the element types of a call. fused_kernels.cpp includes it for the
/// CPU, and fused_kernels.cu for CUDA; nothing else does.
#pragma once

#include <cstdint>
#include <string>

#include "fused_kernels.hpp"

namespace chorale::torch_fused {
namespace {

/// Calls f(T{}) with the C++ type of a float of 32 or 16 bits.
template <class F>
void with_float(DType type, const F& f) {
  if (type == DType::f32) return f(float{});
  if (type == DType::f16) return f(f16{});
  if (type == DType::bf16) return f(bf16{});
  throw UsageError(std::string("there is no fused kernel for ") + dtype_name(type) +
                   ": it is for f32, f16 and bf16");
}
/// Calls f(Q{}) with the C++ type of a code.
template <class F>
void with_code(DType code, const F& f) {
  if (code == DType::fp8_e4m3) return f(fp8_e4m3{});
  if (code == DType::fp8_e5m2) return f(fp8_e5m2{});
  if (code == DType::i8) return f(int8_t{});
  throw UsageError(std::string("there are no codes of ") + dtype_name(code) +
                   ": they are fp8_e4m3, fp8_e5m2 or i8");
}
/// Calls f(T{}) with an integer of this size.
template <class F>
void with_bytes(uint32_t bytes, const F& f) {
  if (bytes == 1) return f(uint8_t{});
  if (bytes == 2) return f(uint16_t{});
  if (bytes == 4) return f(uint32_t{});
  if (bytes == 8) return f(uint64_t{});
  throw UsageError("elements have " + std::to_string(bytes) + " bytes, expected 1, 2, 4 or 8");
}

template <class Id>
void run_dispatch(fused::ExpertExchange& exchange, const fused::Dispatch<Id>& call, void* stream) {
  fused::dispatch(exchange, call, {stream});
}

void run_combine(fused::ExpertExchange& exchange, const fused::Combine& call, void* stream) {
  with_float(exchange.options().result,
             [&](auto element) { fused::combine<decltype(element)>(exchange, call, {stream}); });
}

void run_norm(fused::RmsNormAllReduce& kernel, const NormArguments& of, void* stream) {
  with_float(of.type, [&](auto element) {
    using T = decltype(element);
    const fused::RmsNormCall<T> call{static_cast<const T*>(of.in),
                                     static_cast<T*>(of.residual),
                                     static_cast<const T*>(of.weight),
                                     of.epsilon,
                                     of.rows,
                                     of.cols};
    if (of.out_type == of.type) {
      kernel.run(call, fused::StoreRow<T>{static_cast<T*>(of.out)}, {stream});
      return;
    }
    with_code(of.out_type, [&](auto code) {
      using Q = decltype(code);
      kernel.run(call, fused::QuantiseRow<Q>{static_cast<Q*>(of.out), of.scales, of.block}, {stream});
    });
  });
}

template <class Kernel>
void run_quantised(Kernel& kernel, const QuantisedArguments& of, void* stream) {
  with_float(of.type, [&](auto element) {
    using T = decltype(element);
    with_code(of.code, [&](auto code) {
      kernel.template run<T, decltype(code)>(static_cast<const T*>(of.in), static_cast<T*>(of.out),
                                             of.elements, {stream});
    });
  });
}

void run_transpose(fused::TransposeAllToAll& kernel, const TransposeArguments& of, void* stream) {
  with_bytes(of.element_bytes, [&](auto element) {
    using T = decltype(element);
    kernel.run(static_cast<const T*>(of.in), static_cast<T*>(of.out), of.rows, of.cols, {stream});
  });
}

void run_gather(fused::GatherPermute& kernel, const GatherArguments& of, void* stream) {
  with_bytes(of.element_bytes, [&](auto element) {
    using T = decltype(element);
    kernel.run(fused::GatherPermuteCall<T, int64_t>{static_cast<const T*>(of.in), static_cast<T*>(of.out),
                                                    of.index, of.rows, of.out_rows, of.cols},
               {stream});
  });
}

constexpr Launchers launchers{run_dispatch<int32_t>,
                              run_dispatch<int64_t>,
                              run_combine,
                              run_norm,
                              run_quantised<fused::QuantisedAllReduce>,
                              run_quantised<fused::QuantisedAllGather>,
                              run_transpose,
                              run_gather};

}  // namespace
}  // namespace chorale::torch_fused
