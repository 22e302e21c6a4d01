// Implements the runtime's functions. FAKE_GPUS gives the number of GPUs (default 1).

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "state.hpp"

namespace chorale::test::fake {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

thread_local int current = 0;

int gpus() {
  const char* const text = std::getenv("FAKE_GPUS");
  return text ? std::atoi(text) : 1;
}

/// Holds our contents of a handle. No caller may read the contents of a real one.
struct IpcHandle {
  int process, file;
  uint64_t address, bytes, buffer_id;
};

cudaError_t allocate(void** to, uint64_t bytes, Kind kind) {
  const Lock lock(state().mutex);
  const int file = state().mallocs_fail ? -1 : make_file(bytes);
  if (file < 0) return cudaErrorMemoryAllocation;
  *to = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  state().ranges[reinterpret_cast<uint64_t>(*to)] = {bytes, kind, state().next_buffer_id++, current, file, 0};
  state().used_bytes += bytes;
  return cudaSuccess;
}

cudaError_t free_memory(void* memory) {
  const Lock lock(state().mutex);
  if (!memory) return cudaSuccess;
  const auto found = state().ranges.find(reinterpret_cast<uint64_t>(memory));
  if (found == state().ranges.end() || found->second.kind == Kind::mapped) die("memory is freed twice");
  munmap(memory, found->second.bytes);
  close(found->second.file);
  state().used_bytes -= found->second.bytes;
  state().ranges.erase(found);
  return cudaSuccess;
}

cudaError_t open_ipc(void** to, const cudaIpcMemHandle_t& from) {
  const Lock lock(state().mutex);
  IpcHandle handle;
  std::memcpy(&handle, &from, sizeof handle);
  if (handle.process == getpid()) return cudaErrorInvalidDevice;
  const std::string key(reinterpret_cast<const char*>(&from), sizeof from);
  if (!state().opened.count(key)) {
    for (const auto& [other, opened] : state().opened) {
      const bool overlap =
          handle.address < opened.address + opened.bytes && opened.address < handle.address + handle.bytes;
      if (opened.process == handle.process && overlap) return last_error() = cudaErrorAlreadyMapped;
    }
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.process, handle.file);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return cudaErrorMapBufferObjectFailed;
    void* const data = mmap(nullptr, handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    state().opened[key] = {data, handle.bytes, 0, handle.process, handle.address};
  }
  Opened& opened = state().opened[key];
  ++opened.references;
  *to = opened.data;
  return cudaSuccess;
}

cudaError_t close_ipc(void* memory) {
  const Lock lock(state().mutex);
  for (auto& [key, opened] : state().opened) {
    if (opened.data != memory) continue;
    if (--opened.references == 0) {
      munmap(memory, opened.bytes);
      state().opened.erase(key);
    }
    return cudaSuccess;
  }
  die("an IPC mapping is closed twice");
}

bool is_registered(uint64_t first, uint64_t bytes) {
  for (const auto& [begin, size] : state().registered) {
    if (first < begin + size && begin < first + bytes) return true;
  }
  return false;
}

}  // namespace

int current_device() { return current; }

cudaError_t& last_error() {
  static thread_local cudaError_t last = cudaSuccess;
  return last;
}

}  // namespace chorale::test::fake

using namespace chorale::test::fake;

extern "C" {

// Devices

cudaError_t cudaGetDeviceCount(int* count) { return *count = gpus(), cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = current, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= gpus()) return cudaErrorInvalidDevice;
  current = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  std::strcpy(properties->name, "Fake GPU");
  properties->uuid.bytes[0] = char(device + 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  std::snprintf(text, size_t(bytes), "0000:%02x:00.0", device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  *device = int(std::strtol(text + 5, nullptr, 16));
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  return *can = std::getenv("FAKE_NO_PEER_ACCESS") == nullptr, cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int) {
  if (what != cudaDevAttrPageableMemoryAccess && what != cudaDevAttrMultiProcessorCount)
    return cudaErrorInvalidValue;
  *value = what == cudaDevAttrMultiProcessorCount ? 132 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int) {
  return *value = 1, cudaSuccess;
}

// Kernels

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, size_t) {
  return *blocks = 1, cudaSuccess;
}

// Errors

cudaError_t cudaGetLastError() { return std::exchange(last_error(), cudaSuccess); }
const char* cudaGetErrorString(cudaError_t) { return "fake CUDA"; }
const char* cudaGetErrorName(cudaError_t error) {
  static thread_local char text[32];
  std::snprintf(text, sizeof text, "cudaError %d", int(error));
  return text;
}

// Memory

cudaError_t cudaMalloc(void** to, size_t bytes) { return allocate(to, bytes, Kind::malloced); }
cudaError_t cudaMallocAsync(void** to, size_t bytes, cudaStream_t) {
  return allocate(to, bytes, Kind::pooled);
}
cudaError_t cudaMallocManaged(void** to, size_t bytes, unsigned) {
  return allocate(to, bytes, Kind::managed);
}
cudaError_t cudaMallocHost(void** to, size_t bytes) { return allocate(to, bytes, Kind::host); }
cudaError_t cudaHostAlloc(void** to, size_t bytes, unsigned) { return allocate(to, bytes, Kind::host); }
cudaError_t cudaFree(void* memory) {
  if (!memory) return cudaSuccess;
  cudaStreamSynchronize(nullptr);  // waits for the work on the default stream
  return free_memory(memory);
}
cudaError_t cudaFreeHost(void* memory) { return free_memory(memory); }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Lock lock(state().mutex);
  *total = 1ull << 36;
  *free = *total - state().used_bytes;
  return cudaSuccess;
}
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  const Lock lock(state().mutex);
  const auto found = state().ranges.find(reinterpret_cast<uint64_t>(memory));
  if (found == state().ranges.end()) return cudaErrorInvalidValue;
  const IpcHandle mine{getpid(), found->second.file, found->first, found->second.bytes,
                       found->second.buffer_id};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &mine, sizeof mine);
  return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void** to, cudaIpcMemHandle_t handle, unsigned) {
  return open_ipc(to, handle);
}
cudaError_t cudaIpcCloseMemHandle(void* memory) {
  cudaDeviceSynchronize();
  return close_ipc(memory);
}
cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  const Lock lock(state().mutex);
  const uint64_t first = reinterpret_cast<uint64_t>(memory);
  if (is_registered(first, bytes)) return cudaErrorHostMemoryAlreadyRegistered;
  state().registered[first] = bytes;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* memory) {
  const Lock lock(state().mutex);
  return state().registered.erase(reinterpret_cast<uint64_t>(memory)) ? cudaSuccess
                                                                      : cudaErrorHostMemoryNotRegistered;
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  const Lock lock(state().mutex);
  const uint64_t address = reinterpret_cast<uint64_t>(host);
  *device = host;
  const bool known = is_registered(address, 1) || state().around(address) != state().ranges.end();
  return known ? cudaSuccess : cudaErrorInvalidValue;
}

// Streams and graphs are in streams.cpp.

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  static thread_local cudaStreamCaptureMode now = cudaStreamCaptureModeGlobal;
  return std::swap(*mode, now), cudaSuccess;
}

}  // extern "C"
