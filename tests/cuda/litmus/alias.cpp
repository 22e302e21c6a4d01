#include "alias.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>

#include "executor/cuda/device/driver.hpp"
#include "executor/cuda/device/error.hpp"

namespace chorale::litmus {

using cuda::check;
using cuda::driver;

TwoAddresses::TwoAddresses(int home, int user, uint64_t bytes) {
  check(cudaSetDevice(user), "cudaSetDevice");
  check(cudaFree(nullptr), "the GPU's context");
  CUmemAllocationProp what{};
  what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  what.location = {CU_MEM_LOCATION_TYPE_DEVICE, {home}};
  size_t granularity = 0;
  check(driver().cuMemGetAllocationGranularity(&granularity, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        "the granularity of memory");
  bytes_ = (bytes + granularity - 1) / granularity * granularity;
  check(driver().cuMemCreate(&memory_, bytes_, &what, 0), "cuMemCreate");
  try {
    for (int which = 0; which < 2; ++which) {
      check(driver().cuMemAddressReserve(&at_[which], bytes_, 0, 0, 0), "cuMemAddressReserve");
      check(driver().cuMemMap(at_[which], bytes_, 0, memory_, 0), "cuMemMap");
      mapped_[which] = true;
      CUmemAccessDesc access{};
      access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {user}};
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      check(driver().cuMemSetAccess(at_[which], bytes_, &access, 1), "cuMemSetAccess");
    }
    check(cudaMemset(first(), 0, bytes_), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaMemset");
  } catch (...) {
    unmap();
    throw;
  }
}

TwoAddresses::~TwoAddresses() { unmap(); }

void TwoAddresses::unmap() {
  for (int which = 0; which < 2; ++which) {
    if (mapped_[which]) cuda::check_quietly(driver().cuMemUnmap(at_[which], bytes_), "cuMemUnmap");
    if (at_[which]) cuda::check_quietly(driver().cuMemAddressFree(at_[which], bytes_), "cuMemAddressFree");
  }
  cuda::check_quietly(driver().cuMemRelease(memory_), "cuMemRelease");
}

}  // namespace chorale::litmus
