#include "identity.hpp"

#include <fmt/format.h>

#include <tuple>
#include <utility>

#include "executor/cuda/device/device.hpp"
#include "executor/cuda/device/driver.hpp"
#include "executor/cuda/device/error.hpp"

namespace chorale::cuda {
namespace {

/// Holds CUDA's attributes for an address; zeros if CUDA does not know the address.
struct Attributes {
  unsigned memory_type = 0;  // CUmemorytype
  int device = -1;
  unsigned managed = 0, ipc_capable = 0;
  unsigned long long buffer_id = 0;
  void* pool = nullptr;
  CUdeviceptr mapping = 0;  // the mapping by cuMemMap()
  size_t mapping_bytes = 0;

  explicit Attributes(CUdeviceptr address) {
    std::pair<CUpointer_attribute, void*> wanted[] = {
        {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &memory_type},
        {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &device},
        {CU_POINTER_ATTRIBUTE_IS_MANAGED, &managed},
        {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, &ipc_capable},
        {CU_POINTER_ATTRIBUTE_BUFFER_ID, &buffer_id},
        {CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, &pool},
        {CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, &mapping},
        {CU_POINTER_ATTRIBUTE_MAPPING_SIZE, &mapping_bytes},
    };
    constexpr unsigned count = sizeof wanted / sizeof *wanted;
    CUpointer_attribute names[count];
    void* values[count];
    for (unsigned at = 0; at < count; ++at) std::tie(names[at], values[at]) = wanted[at];
    check(driver().cuPointerGetAttributes(count, names, values, address), "cuPointerGetAttributes");
  }
};

/// Finds the handle of memory from cuMemCreate(). Returns "" if the memory is of that kind and can be shared,
/// or else the reason.
std::string find_handle(CUdeviceptr address, Segment& segment) {
  CUmemGenericAllocationHandle handle = 0;
  if (driver().cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(address)) != CUDA_SUCCESS) {
    return "it comes from neither cudaMalloc nor cuMemCreate";
  }
  CUmemAllocationProp properties{};
  const CUresult asked = driver().cuMemGetAllocationPropertiesFromHandle(&properties, handle);
  // The mapping keeps the allocation alive, and the handle keeps its number.
  check_quietly(driver().cuMemRelease(handle), "cuMemRelease");
  check(asked, "cuMemGetAllocationPropertiesFromHandle");
  if (properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return "it is host memory made by cuMemCreate";
  segment.handle = handle;
  const unsigned types = properties.requestedHandleTypes;
  if (types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    segment.sharing = Sharing::descriptor;
  } else if (types & CU_MEM_HANDLE_TYPE_FABRIC) {
    segment.sharing = Sharing::fabric;
  } else {
    return "it was made by cuMemCreate without a shareable handle type (PyTorch: see "
           "expandable_segments in PYTORCH_CUDA_ALLOC_CONF)";
  }
  return {};
}

/// Finds the range around an address: the result of one cudaMalloc(), or one mapping of cuMemMap().
bool find_range(CUdeviceptr address, const Attributes& is, Segment& segment) {
  CUdeviceptr base = 0;
  size_t bytes = 0;
  if (driver().cuMemGetAddressRange(&base, &bytes, address) != CUDA_SUCCESS) return false;
  // A handle backs one mapping, and the reserved range may hold several mappings.
  const bool narrower = is.mapping_bytes != 0 && is.mapping_bytes < bytes;
  segment.base = narrower ? is.mapping : base;
  segment.bytes = narrower ? is.mapping_bytes : bytes;
  return address - segment.base < segment.bytes;
}

}  // namespace

std::string find_segment(uint64_t address, Segment& segment, int& device) {
  const Attributes is(address);
  if (is.memory_type == 0) return "CUDA does not know it: it is pageable host memory, or was freed";
  if (is.managed) return "it is managed memory";
  if (is.memory_type != CU_MEMORYTYPE_DEVICE) return "it is host memory";
  if (is.pool) return "it comes from a stream-ordered pool (cudaMallocAsync)";
  device = is.device;
  segment.buffer_id = is.buffer_id;
  // CUDA records ranges by context, and a rank of this process may ask about another rank's memory.
  const CurrentDevice on(is.device);
  if (!find_range(address, is, segment)) return "CUDA does not know the allocation that contains it";
  if (is.ipc_capable) {
    segment.sharing = Sharing::ipc;
    return {};
  }
  return find_handle(address, segment);
}

Located locate(const void* pointer, uint64_t bytes) {
  Located located;
  const uint64_t begin = reinterpret_cast<uint64_t>(pointer);
  if (!pointer || bytes == 0) {
    located.why_not = "it has no bytes";
    return located;
  }
  for (uint64_t at = begin; at < begin + bytes;) {
    Segment segment;
    int device = -1;
    std::string why_not = find_segment(at, segment, device);
    const bool first = located.segments.empty();
    if (why_not.empty() && !first) {
      if (device != located.device) why_not = "it is on two devices";
      if (segment.sharing == Sharing::ipc || located.segments[0].sharing == Sharing::ipc) {
        why_not = "it spans two allocations of cudaMalloc";
      }
    }
    if (!why_not.empty()) {
      located.segments.clear();
      located.why_not = first ? why_not : fmt::format("from byte {} of {}, {}", at - begin, bytes, why_not);
      return located;
    }
    if (first) {
      located.device = device;
      located.offset = at - segment.base;
    }
    at = segment.base + segment.bytes;
    located.segments.push_back(segment);
  }
  return located;
}

std::optional<Identity> identity_of(const void* pointer, uint64_t bytes, std::string* why_not) {
  const Located located = locate(pointer, bytes);
  if (why_not) *why_not = located.why_not;
  if (located.segments.empty()) return std::nullopt;
  Identity identity{.buffer_id = 0, .base = located.segments[0].base, .bytes = 0};
  for (const Segment& segment : located.segments) {
    identity.bytes += segment.bytes;
    // This is FNV-1a. It includes the handle, because memory may be mapped anew in a range that has stayed.
    for (const uint64_t word : {segment.buffer_id, uint64_t(segment.handle), segment.bytes}) {
      identity.buffer_id = (identity.buffer_id ^ word) * 0x100000001b3;
    }
  }
  return identity;
}

}  // namespace chorale::cuda
