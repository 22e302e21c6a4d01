/// \file
/// Loads the part of the CUDA driver that describes GPUs, at run time. So the build needs no toolkit, and the
/// command starts without a GPU.
#pragma once

#include <cstddef>
#include <string>

namespace chorale::tools {

/// Lists the device attributes that we query, with cuda.h's numbers.
enum class DeviceAttribute : int {
  multiprocessors = 16,
  compute_mode = 20,
  threads_per_multiprocessor = 39,
  unified_addressing = 41,
  capability_major = 75,
  capability_minor = 76,
  virtual_memory = 102,
  posix_descriptors = 103,
  ipc_events = 125,
  fabric_handles = 128,
  multicast = 132
};

// Each row is FUNCTION(member, symbol, arguments). All functions return a CUresult; 0 is success.
#define CHORALE_CUDA_FUNCTIONS(FUNCTION) \
  FUNCTION(init, "cuInit", unsigned flags) \
  FUNCTION(driver_version, "cuDriverGetVersion", int* version) \
  FUNCTION(device_count, "cuDeviceGetCount", int* count) \
  FUNCTION(device, "cuDeviceGet", int* device, int ordinal) \
  FUNCTION(name, "cuDeviceGetName", char* name, int bytes, int device) \
  FUNCTION(memory, "cuDeviceTotalMem_v2", size_t* bytes, int device) \
  FUNCTION(attribute, "cuDeviceGetAttribute", int* value, int attribute, int device) \
  FUNCTION(bus_id, "cuDeviceGetPCIBusId", char* text, int bytes, int device) \
  FUNCTION(can_access_peer, "cuDeviceCanAccessPeer", int* can, int device, int peer) \
  FUNCTION(error_string, "cuGetErrorString", int error, const char** text)

struct CudaDriver {
#define CHORALE_CUDA_MEMBER(member, symbol, ...) int (*member)(__VA_ARGS__) = nullptr;
  CHORALE_CUDA_FUNCTIONS(CHORALE_CUDA_MEMBER)
#undef CHORALE_CUDA_MEMBER

  std::string problem;  ///< the reason why the driver cannot be used; empty after it has been initialised

  /// Returns an error in words: "no CUDA-capable device is detected (100)".
  std::string text_of(int error) const;
  /// Returns an attribute's value; 0 if the driver does not know it.
  int attribute_of(int device, DeviceAttribute) const;
};

CudaDriver load_cuda_driver();

}  // namespace chorale::tools
