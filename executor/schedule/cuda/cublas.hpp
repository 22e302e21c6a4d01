/// \file
/// cuBLAS computes matrix products. It is found at run time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>

#include "executor/schedule/functions.hpp"

namespace chorale::schedule_run {

/// Owns a cuBLAS handle for the streams of one schedule, on the device that is current at construction.
class Cublas {
 public:
  /// Returns why cuBLAS is not available; "" if it is.
  static const std::string& problem();

  /// Returns why cuBLAS cannot do a call of matmul or linear that has no misfit(); "" if it can.
  static std::string refuses(const HostCall& call);

  /// \throws RunError
  explicit Cublas(uint32_t streams);
  ~Cublas();
  Cublas(const Cublas&) = delete;

  /// Enqueues the product of a call on its CUDA stream. With `accumulate` it adds to the existing elements.
  /// f32 is multiplied as f32, or as TF32 with the attribute "tf32" = 1.
  /// \throws RunError
  void multiply(const HostCall& call, bool accumulate);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chorale::schedule_run
