// Implements the driver's functions. As in the real driver, they are found by name.

#include <cudaTypedefs.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <type_traits>

#include "state.hpp"
#include "streams.hpp"

namespace chorale::test::fake {

State& state() {
  static State& all = *new State;
  return all;
}

std::map<uint64_t, Range>::iterator State::around(uint64_t address) {
  auto found = ranges.upper_bound(address);
  if (found == ranges.begin()) return ranges.end();
  --found;
  return address - found->first < found->second.bytes ? found : ranges.end();
}

int make_file(uint64_t bytes) {
  const int file = bytes > 1ull << 40 ? -1 : memfd_create("device memory", MFD_CLOEXEC);
  return file >= 0 && ftruncate(file, off_t(bytes)) == 0 ? file : -1;
}

void die(const char* why) {
  std::fprintf(stderr, "fake CUDA: %s\n", why);
  std::abort();
}

CUresult release(uint64_t number) {
  const auto found = state().handles.find(number);
  if (found == state().handles.end()) die("a handle is released too often");
  Handle& handle = found->second;
  if (--handle.references > 0) return CUDA_SUCCESS;
  if (handle.bound_bytes != 0) die("a multicast object goes, and memory is bound to it");
  if (handle.team) munmap(handle.team, 4096);
  close(handle.file);
  if (handle.created) state().used_bytes -= handle.bytes;
  state().handles.erase(found);
  return CUDA_SUCCESS;
}

uint64_t add(const Handle& handle) {
  uint64_t number = 1000;
  while (state().handles.count(number)) ++number;
  state().handles[number] = handle;
  return number;
}

namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

void* page(uint64_t address, uint64_t bytes, int flags, int file) {
  return mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, flags, file, 0);
}

CUresult get_attribute(int* value, CUdevice_attribute what, CUdevice) {
  *value = !(what == CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED && state().no_multicast);
  return CUDA_SUCCESS;
}

CUresult pointer_attributes(unsigned count, CUpointer_attribute* names, void** values, CUdeviceptr address) {
  const Lock lock(state().mutex);
  const auto found = state().around(address);
  const bool known = found != state().ranges.end();
  const Range range = known ? found->second : Range{.device = -2};
  const auto is = [&](Kind kind) { return unsigned(known && range.kind == kind); };
  for (unsigned at = 0; at < count; ++at) {
    switch (names[at]) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<unsigned*>(values[at]) =
            !known ? 0u : unsigned(is(Kind::host) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(values[at]) = range.device;
        break;
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *static_cast<unsigned*>(values[at]) = is(Kind::managed);
        break;
      case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *static_cast<unsigned*>(values[at]) = is(Kind::malloced);
        break;
      case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *static_cast<unsigned long long*>(values[at]) = range.buffer_id;
        break;
      case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *static_cast<void**>(values[at]) = is(Kind::pooled) ? values : nullptr;
        break;
      case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *static_cast<uint64_t*>(values[at]) = 0;
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

CUresult address_range(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  const Lock lock(state().mutex);
  const auto found = state().around(address);
  if (found == state().ranges.end()) return CUDA_ERROR_NOT_FOUND;
  *base = found->first;
  *bytes = found->second.bytes;
  return CUDA_SUCCESS;
}

CUresult create(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties,
                unsigned long long) {
  const Lock lock(state().mutex);
  const int file = make_file(bytes);
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = add({file, bytes, unsigned(properties->requestedHandleTypes), 1, true, properties->location.id});
  state().used_bytes += bytes;
  return CUDA_SUCCESS;
}

CUresult release_handle(CUmemGenericAllocationHandle handle) {
  const Lock lock(state().mutex);
  return release(handle);
}

CUresult retain(CUmemGenericAllocationHandle* handle, void* address) {
  const Lock lock(state().mutex);
  const auto found = state().around(reinterpret_cast<uint64_t>(address));
  if (found == state().ranges.end() || found->second.kind != Kind::mapped) return CUDA_ERROR_INVALID_VALUE;
  *handle = found->second.handle;
  ++state().handles[*handle].references;
  return CUDA_SUCCESS;
}

/// Holds our contents of a handle. No caller may read the contents of a real one.
struct FabricHandle {
  int process, file;
};
static_assert(sizeof(FabricHandle) <= sizeof(CUmemFabricHandle));

CUresult export_handle(void* to, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                       unsigned long long) {
  const Lock lock(state().mutex);
  const Handle& from = state().handles.at(handle);
  if (!(from.types & unsigned(type))) return CUDA_ERROR_INVALID_VALUE;
  if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
    const FabricHandle mine{getpid(), from.file};
    std::memset(to, 0, sizeof(CUmemFabricHandle));
    std::memcpy(to, &mine, sizeof mine);
    return CUDA_SUCCESS;
  }
  *static_cast<int*>(to) = fcntl(from.file, F_DUPFD_CLOEXEC, 0);
  return CUDA_SUCCESS;
}

/// Opens the memory of a fabric handle, in any process.
int open_fabric(const void* from) {
  FabricHandle handle;
  std::memcpy(&handle, from, sizeof handle);
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.process, handle.file);
  return open(path, O_RDWR | O_CLOEXEC);
}

CUresult import_handle(CUmemGenericAllocationHandle* handle, void* from, CUmemAllocationHandleType type) {
  const Lock lock(state().mutex);
  const int file = type == CU_MEM_HANDLE_TYPE_FABRIC
                       ? open_fabric(from)
                       : fcntl(int(reinterpret_cast<uintptr_t>(from)), F_DUPFD_CLOEXEC, 0);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) return CUDA_ERROR_INVALID_VALUE;
  Team* const team = team_of(file, uint64_t(status.st_size));
  *handle = add(
      {file, uint64_t(status.st_size) - (team ? 4096 : 0), unsigned(type), 1, false, current_device(), team});
  return CUDA_SUCCESS;
}

CUresult reserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr, unsigned long long) {
  const Lock lock(state().mutex);
  void* const range = page(0, bytes + alignment, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (range == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t first = reinterpret_cast<uint64_t>(range);
  *address = alignment == 0 ? first : (first + alignment - 1) / alignment * alignment;
  if (*address != first) munmap(range, *address - first);
  if (const uint64_t rest = first + alignment - *address)
    munmap(reinterpret_cast<void*>(*address + bytes), rest);
  state().reservations[*address] = {bytes, state().next_buffer_id++};
  return CUDA_SUCCESS;
}

CUresult free_addresses(CUdeviceptr address, size_t bytes) {
  const Lock lock(state().mutex);
  const auto found = state().reservations.find(address);
  if (found == state().reservations.end() || found->second.bytes != bytes) die("addresses are freed wrongly");
  const auto mapped = state().ranges.lower_bound(address);
  if (mapped != state().ranges.end() && mapped->first < address + bytes) die("mapped addresses are freed");
  munmap(reinterpret_cast<void*>(address), bytes);
  state().reservations.erase(found);
  return CUDA_SUCCESS;
}

CUresult map(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle number,
             unsigned long long) {
  const Lock lock(state().mutex);
  Handle& handle = state().handles.at(number);
  auto reserved = state().reservations.upper_bound(address);
  if (reserved == state().reservations.begin() || handle.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  --reserved;
  if (address + bytes > reserved->first + reserved->second.bytes) return CUDA_ERROR_INVALID_VALUE;
  if (handle.team && (address % multicast_unit != 0 || bytes % multicast_unit != 0))
    return CUDA_ERROR_INVALID_VALUE;
  if (handle.team && std::popcount(handle.team->added.load()) != int(handle.team->devices))
    die("CUDA would wait here for the other devices of a multicast object");
  page(address, bytes, MAP_SHARED | MAP_FIXED, handle.file);
  ++handle.references;
  state().ranges[address] = {bytes, Kind::mapped, reserved->second.buffer_id, handle.device, -1, number};
  return CUDA_SUCCESS;
}

CUresult unmap(CUdeviceptr address, size_t bytes) {
  const Lock lock(state().mutex);
  const auto found = state().ranges.find(address);
  if (found == state().ranges.end() || found->second.bytes != bytes) die("what is not mapped is unmapped");
  page(address, bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1);
  const uint64_t handle = found->second.handle;
  state().ranges.erase(found);
  return release(handle);
}

CUresult set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc*, size_t) {
  const Lock lock(state().mutex);
  for (uint64_t at = address; at < address + bytes;) {
    const auto found = state().ranges.find(at);
    if (found == state().ranges.end()) return CUDA_ERROR_INVALID_VALUE;
    if (found->second.accessible) return CUDA_ERROR_ALREADY_MAPPED;  // CUDA was seen to return this
    mprotect(reinterpret_cast<void*>(at), found->second.bytes, PROT_READ | PROT_WRITE);
    found->second.accessible = true;
    at += found->second.bytes;
  }
  return CUDA_SUCCESS;
}

CUresult get_access(unsigned long long* flags, const CUmemLocation*, CUdeviceptr address) {
  const Lock lock(state().mutex);
  const auto found = state().around(address);
  if (found == state().ranges.end()) return CUDA_ERROR_INVALID_VALUE;
  *flags = found->second.accessible ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

CUresult granularity(size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  *bytes = 2 << 20;
  return CUDA_SUCCESS;
}

CUresult properties_of(CUmemAllocationProp* properties, CUmemGenericAllocationHandle number) {
  const Lock lock(state().mutex);
  const Handle& handle = state().handles.at(number);
  *properties = {};
  properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties->location.id = handle.device;
  properties->requestedHandleTypes = CUmemAllocationHandleType(handle.types);
  return CUDA_SUCCESS;
}

template <class Word>
CUresult write_word(CUstream stream, CUdeviceptr address, Word value, unsigned) {
  // The reader of the word also sees what the stream did before.
  enqueue(stream, [=] {
    while (state().one_queue && state().kernels > 0)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    std::atomic_ref(*reinterpret_cast<Word*>(address)).store(value, std::memory_order_release);
  });
  return CUDA_SUCCESS;
}

/// Waits until the word has reached the value, by signed distance.
template <class Word>
CUresult wait_word(CUstream stream, CUdeviceptr address, Word value, unsigned flags) {
  if (flags != CU_STREAM_WAIT_VALUE_GEQ) return CUDA_ERROR_NOT_SUPPORTED;
  enqueue(stream, [=] {
    const std::atomic_ref word(*reinterpret_cast<Word*>(address));
    while (std::make_signed_t<Word>(word.load(std::memory_order_acquire) - value) < 0)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  });
  return CUDA_SUCCESS;
}

CUresult batch_words(CUstream stream, unsigned count, CUstreamBatchMemOpParams* all, unsigned) {
  for (unsigned which = 0; which < count; ++which) {
    const CUstreamBatchMemOpParams& one = all[which];
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    if (one.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32)
      result = write_word<cuuint32_t>(stream, one.writeValue.address, one.writeValue.value, 0);
    if (one.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32)
      result = wait_word<cuuint32_t>(stream, one.waitValue.address, one.waitValue.value, one.waitValue.flags);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

void* find(const std::string& name) {
  static const std::map<std::string, void*> all = {
      {"cuDeviceGetAttribute", reinterpret_cast<void*>(get_attribute)},
      {"cuPointerGetAttributes", reinterpret_cast<void*>(pointer_attributes)},
      {"cuMemGetAddressRange", reinterpret_cast<void*>(address_range)},
      {"cuMemCreate", reinterpret_cast<void*>(create)},
      {"cuMemRelease", reinterpret_cast<void*>(release_handle)},
      {"cuMemRetainAllocationHandle", reinterpret_cast<void*>(retain)},
      {"cuMemExportToShareableHandle", reinterpret_cast<void*>(export_handle)},
      {"cuMemImportFromShareableHandle", reinterpret_cast<void*>(import_handle)},
      {"cuMemAddressReserve", reinterpret_cast<void*>(reserve)},
      {"cuMemAddressFree", reinterpret_cast<void*>(free_addresses)},
      {"cuMemMap", reinterpret_cast<void*>(map)},
      {"cuMemUnmap", reinterpret_cast<void*>(unmap)},
      {"cuMemSetAccess", reinterpret_cast<void*>(set_access)},
      {"cuMemGetAccess", reinterpret_cast<void*>(get_access)},
      {"cuMemGetAllocationGranularity", reinterpret_cast<void*>(granularity)},
      {"cuMemGetAllocationPropertiesFromHandle", reinterpret_cast<void*>(properties_of)},
      {"cuStreamWriteValue32", reinterpret_cast<void*>(write_word<cuuint32_t>)},
      {"cuStreamBatchMemOp", reinterpret_cast<void*>(batch_words)},
  };
  const auto found = all.find(name);
  return found == all.end() ? find_multicast(name) : found->second;
}

}  // namespace
}  // namespace chorale::test::fake

extern "C" cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                                        unsigned long long,
                                                        cudaDriverEntryPointQueryResult* found) {
  *function = chorale::test::fake::find(name);
  *found = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
