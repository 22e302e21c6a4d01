/// \file
/// Matrix products by cuBLAS, which is found at run time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>

#include "../functions.hpp"

namespace chorale::hostrun {

/// For the lanes of one schedule on the device that is current when it is made.
class Cublas {
 public:
  /// Why there is no cuBLAS here; "" if there is.
  static const std::string& problem();

  /// What it cannot do of a call of matmul or linear that has no misfit(); "" if it can.
  static std::string refuses(const HostCall& call);

  /// \throws RunError
  explicit Cublas(uint32_t lanes);
  ~Cublas();
  Cublas(const Cublas&) = delete;

  /// Enqueues the product of a call on its stream; adds to what is there if `accumulate`. f32 is multiplied
  /// as such, or as TF32 with the attribute "tf32" = 1. \throws RunError
  void multiply(const HostCall& call, bool accumulate);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chorale::hostrun
