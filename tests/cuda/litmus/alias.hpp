/// \file
/// Provides memory of one GPU that another reaches through two addresses.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace chorale::litmus {

class TwoAddresses {
 public:
  /// Allocates zeroed memory on GPU `home`, and maps it twice for GPU `user`.
  /// \throws RunError
  TwoAddresses(int home, int user, uint64_t bytes);
  ~TwoAddresses();
  TwoAddresses(const TwoAddresses&) = delete;
  TwoAddresses& operator=(const TwoAddresses&) = delete;

  uint64_t* first() const { return reinterpret_cast<uint64_t*>(at_[0]); }
  uint64_t* second() const { return reinterpret_cast<uint64_t*>(at_[1]); }

 private:
  void unmap();

  CUmemGenericAllocationHandle memory_ = 0;
  CUdeviceptr at_[2] = {0, 0};
  bool mapped_[2] = {false, false};
  uint64_t bytes_ = 0;
};

}  // namespace chorale::litmus
