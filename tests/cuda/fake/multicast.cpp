// Implements multicast objects, which can be made, shared and bound. There is no switch.

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstddef>
#include <new>

#include "state.hpp"

namespace chorale::test::fake {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

constexpr uint64_t magic = 0x6d756c7469636173, page_bytes = 4096;

Team* map_team(int file, uint64_t at) {
  void* const page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, off_t(at));
  return page == MAP_FAILED ? nullptr : static_cast<Team*>(page);
}

Handle* object(CUmemGenericAllocationHandle number) {
  const auto found = state().handles.find(number);
  return found == state().handles.end() || !found->second.team ? nullptr : &found->second;
}

bool is_whole(uint64_t bytes) { return bytes != 0 && bytes % multicast_unit == 0; }

CUresult granularity(size_t* bytes, const CUmulticastObjectProp*, CUmulticastGranularity_flags option) {
  *bytes = option == CU_MULTICAST_GRANULARITY_MINIMUM ? multicast_unit : 16 * multicast_unit;
  return CUDA_SUCCESS;
}

CUresult create(CUmemGenericAllocationHandle* handle, const CUmulticastObjectProp* properties) {
  const Lock lock(state().mutex);
  if (!is_whole(properties->size) || properties->numDevices < 2 || properties->flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const int file = make_file(properties->size + page_bytes);
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  Team* const team = new (map_team(file, properties->size)) Team;
  team->magic = magic;
  team->devices = properties->numDevices;
  *handle =
      add({file, properties->size, unsigned(properties->handleTypes), 1, false, current_device(), team});
  ++state().multicast_objects;
  return CUDA_SUCCESS;
}

CUresult add_device(CUmemGenericAllocationHandle number, CUdevice device) {
  const Lock lock(state().mutex);
  if (state().adding_fails) return CUDA_ERROR_NOT_PERMITTED;
  Handle* const of = object(number);
  if (!of) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t before = of->team->added.fetch_or(uint64_t{1} << device);
  if (before >> device & 1 || std::popcount(before) == int(of->team->devices))
    return CUDA_ERROR_INVALID_DEVICE;
  return CUDA_SUCCESS;
}

CUresult bind(CUmemGenericAllocationHandle number, size_t at, CUmemGenericAllocationHandle memory_number,
              size_t memory_at, size_t bytes, unsigned long long flags) {
  const Lock lock(state().mutex);
  Handle* const of = object(number);
  const auto memory = state().handles.find(memory_number);
  if (!of || memory == state().handles.end() || memory->second.team || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (std::popcount(of->team->added.load()) != int(of->team->devices))
    die("CUDA would wait here for the other devices of a multicast object");
  if (at != 0 || memory_at != 0 || !is_whole(bytes) || bytes > of->bytes || bytes > memory->second.bytes)
    return CUDA_ERROR_INVALID_VALUE;
  const uint64_t bit = uint64_t{1} << memory->second.device;
  if (!(of->team->added.load() & bit) || of->team->bound.fetch_or(bit) & bit)
    return CUDA_ERROR_INVALID_DEVICE;
  of->bound_bytes = bytes;
  ++memory->second.references;  // the object holds a reference
  of->bound_memory = memory_number;
  return CUDA_SUCCESS;
}

CUresult unbind(CUmemGenericAllocationHandle number, CUdevice device, size_t at, size_t bytes) {
  const Lock lock(state().mutex);
  Handle* const of = object(number);
  const uint64_t bit = uint64_t{1} << device;
  if (!of || at != 0 || bytes != of->bound_bytes || !(of->team->bound.fetch_and(~bit) & bit))
    die("what is not bound is unbound");
  of->bound_bytes = 0;
  return release(of->bound_memory);
}

}  // namespace

Team* team_of(int file, uint64_t bytes) {
  if (bytes % multicast_unit != page_bytes) return nullptr;
  Team* const team = map_team(file, bytes - page_bytes);
  return team && team->magic == magic ? team : nullptr;
}

void* find_multicast(const std::string& name) {
  static const std::map<std::string, void*> all = {
      {"cuMulticastCreate", reinterpret_cast<void*>(create)},
      {"cuMulticastAddDevice", reinterpret_cast<void*>(add_device)},
      {"cuMulticastBindMem", reinterpret_cast<void*>(bind)},
      {"cuMulticastUnbind", reinterpret_cast<void*>(unbind)},
      {"cuMulticastGetGranularity", reinterpret_cast<void*>(granularity)},
  };
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace chorale::test::fake
