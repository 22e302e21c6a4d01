/// \file
/// This file finds the CUDA driver's functions at run time, so that a program built with CUDA also starts on
/// a machine without a driver.
#pragma once

#include <cudaTypedefs.h>

namespace chorale::cuda {

// FUNCTION(name, the CUDA version that introduced this form of it: the number in its PFN_ type)
#define CHORALE_CUDA_DRIVER(FUNCTION) \
  FUNCTION(cuDeviceGetAttribute, 2000) \
  FUNCTION(cuPointerGetAttributes, 7000) \
  FUNCTION(cuMemGetAddressRange, 3020) \
  FUNCTION(cuMemCreate, 10020) \
  FUNCTION(cuMemRelease, 10020) \
  FUNCTION(cuMemRetainAllocationHandle, 11000) \
  FUNCTION(cuMemExportToShareableHandle, 10020) \
  FUNCTION(cuMemImportFromShareableHandle, 10020) \
  FUNCTION(cuMemAddressReserve, 10020) \
  FUNCTION(cuMemAddressFree, 10020) \
  FUNCTION(cuMemMap, 10020) \
  FUNCTION(cuMemUnmap, 10020) \
  FUNCTION(cuMemSetAccess, 10020) \
  FUNCTION(cuMemGetAccess, 10020) \
  FUNCTION(cuMemGetAllocationGranularity, 10020) \
  FUNCTION(cuMemGetAllocationPropertiesFromHandle, 10020) \
  FUNCTION(cuStreamWriteValue32, 11070) \
  FUNCTION(cuStreamBatchMemOp, 11070)

/// Has a member for each function: driver().cuMemCreate(...).
struct Driver {
#define CHORALE_CUDA_MEMBER(name, version) PFN_##name##_v##version name = nullptr;
  CHORALE_CUDA_DRIVER(CHORALE_CUDA_MEMBER)
#undef CHORALE_CUDA_MEMBER
};

// This table has the same form. It lists the functions that only switch channels by multicast need. They are
// looked up separately, so that everything else works with a driver that lacks them.
#define CHORALE_CUDA_MULTICAST(FUNCTION) \
  FUNCTION(cuMulticastCreate, 12010) \
  FUNCTION(cuMulticastAddDevice, 12010) \
  FUNCTION(cuMulticastBindMem, 12010) \
  FUNCTION(cuMulticastUnbind, 12010) \
  FUNCTION(cuMulticastGetGranularity, 12010)

struct MulticastDriver {
#define CHORALE_CUDA_MEMBER(name, version) PFN_##name##_v##version name = nullptr;
  CHORALE_CUDA_MULTICAST(CHORALE_CUDA_MEMBER)
#undef CHORALE_CUDA_MEMBER
};

/// Returns the driver's functions, which the first call loads.
/// \throws RunError other if there is no driver or it is too old; the error names the missing function
const Driver& driver();
const MulticastDriver& multicast_driver();  ///< does the same for the functions of multicast

}  // namespace chorale::cuda
