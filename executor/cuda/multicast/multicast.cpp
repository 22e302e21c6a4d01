#include "multicast.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "executor/cuda/device/device.hpp"
#include "executor/cuda/device/driver.hpp"
#include "executor/cuda/device/error.hpp"
#include "executor/system/round_up.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/descriptors.hpp"

namespace chorale::cuda {
namespace {

using system::Descriptor;
using world::collective_try;

bool offers(CUdevice_attribute what, int device) {
  int value = 0;
  check(driver().cuDeviceGetAttribute(&value, what, device), "cuDeviceGetAttribute");
  return value != 0;
}

CUmulticastObjectProp properties_of(size_t members, uint64_t bytes) {
  CUmulticastObjectProp properties{};
  properties.numDevices = unsigned(members);
  properties.size = bytes;
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

/// Returns the granularity of the sizes and addresses of all groups' objects. CUDA's recommended granularity
/// would be faster, as its documentation says, but may be many times as large as a message.
uint64_t granularity_of(const SwitchGroups& groups, uint64_t bytes) {
  uint64_t most = 1;
  for (const auto& group : groups) {
    const CUmulticastObjectProp properties = properties_of(group.size(), bytes);
    size_t unit = 0;
    check(multicast_driver().cuMulticastGetGranularity(&unit, &properties, CU_MULTICAST_GRANULARITY_MINIMUM),
          fmt::format("cuMulticastGetGranularity of {} devices", group.size()));
    most = std::max<uint64_t>(most, unit);
  }
  return most;
}

bool is_member(const std::vector<uint32_t>& group, int rank) {
  return std::find(group.begin(), group.end(), uint32_t(rank)) != group.end();
}

/// Returns the rank that creates the group's object.
int maker_of(const std::vector<uint32_t>& group) { return int(group.front()); }

}  // namespace

std::string refuse_multicast_devices(const std::vector<RankDevice>& devices, const SwitchGroups& groups,
                                     int device) {
  constexpr const char* instead = "take switch_channels = peer";
  for (const auto& group : groups) {
    for (size_t one = 0; one < group.size(); ++one) {
      for (size_t other = 0; other < one; ++other) {
        const RankDevice& mine = devices[group[one]];
        if (!mine.same_device(devices[group[other]])) continue;
        return fmt::format(
            "ranks {} and {} of a switch channel share {}, but a GPU can join multicast only once: give each "
            "rank its own GPU, or {}",
            group[other], group[one], mine.text(), instead);
      }
    }
  }
  const std::pair<CUdevice_attribute, const char*> needed[] = {
      {CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, "multicast"},
      {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "virtual memory management"},
      {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, "POSIX file descriptors of memory"}};
  for (const auto& [what, name] : needed) {
    if (!offers(what, device))
      return fmt::format("device {} offers no {}, which switch_channels = multicast needs: {}", device, name,
                         instead);
  }
  return {};
}

/// Holds this rank's part of a group's multicast object.
class MulticastMemory::Object {
 public:
  Object(CUmemGenericAllocationHandle handle, int device) : handle_(handle), device_(device) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  ~Object() {
    range_ = AddressRange();
    if (bound_ != 0)
      check_quietly(multicast_driver().cuMulticastUnbind(handle_, device_, 0, bound_), "cuMulticastUnbind");
    check_quietly(driver().cuMemRelease(handle_), "cuMemRelease");
  }

  Descriptor share() const {
    int descriptor = -1;
    check(driver().cuMemExportToShareableHandle(&descriptor, handle_,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          "cuMemExportToShareableHandle of a multicast object");
    return Descriptor(descriptor);
  }

  void add_device() {
    check(multicast_driver().cuMulticastAddDevice(handle_, device_),
          fmt::format("cuMulticastAddDevice of device {}", device_));
  }

  /// Binds the memory. CUDA waits here until all devices have been added.
  void bind(const Allocation& memory, uint64_t bytes) {
    CUmemGenericAllocationHandle of = 0;
    check(driver().cuMemRetainAllocationHandle(&of, memory.data()), "cuMemRetainAllocationHandle");
    const CUresult result = multicast_driver().cuMulticastBindMem(handle_, 0, of, 0, bytes, 0);
    check_quietly(driver().cuMemRelease(of), "cuMemRelease");
    check(result, fmt::format("cuMulticastBindMem of {} bytes", bytes));
    bound_ = bytes;
  }

  void map(uint64_t bytes, uint64_t granularity) {
    range_ = AddressRange(bytes, granularity);
    range_.map_kept(handle_, bytes);
    range_.give_access(device_);
  }

  char* data() const { return range_.data(); }

 private:
  CUmemGenericAllocationHandle handle_;
  int device_;
  uint64_t bound_ = 0;
  AddressRange range_;
};

MulticastMemory::MulticastMemory(World& world, Imports& imports, uint64_t bytes, const SwitchGroups& groups) {
  const OutsideCapture outside;
  const int device = imports.devices()[size_t(world.rank())].ordinal;
  const CurrentDevice on(device);
  uint64_t granularity = 1;
  collective_try(world, [&] { granularity = granularity_of(groups, bytes); });
  for (const auto& said : world.allgather(world::bytes_of(granularity)))
    granularity = std::max(granularity, world::read_as<uint64_t>(said));
  bytes_ = round_up(std::max<uint64_t>(bytes, 1), granularity);
  collective_try(world, [&] {
    memory_ = Allocation(bytes_);
    check(cudaMemset(memory_.data(), 0, bytes_), "clearing memory for multicast");
    check(cudaStreamSynchronize(nullptr), "clearing memory for multicast");
  });
  mapped_ = PeerMemory::exchange(world, imports, memory_.data(), bytes_);
  make_objects(world, imports, groups);
  const auto each = [&](const auto& step) {
    collective_try(world, [&] {
      for (const auto& object : objects_) {
        if (object) step(*object);
      }
    });
  };
  // Binding and mapping wait in CUDA for the devices of all members. Before that, all ranks learn whether one
  // of them could not add its device.
  each([](Object& object) { object.add_device(); });
  each([&](Object& object) { object.bind(memory_, bytes_); });
  each([&](Object& object) { object.map(bytes_, granularity); });
}

MulticastMemory::~MulticastMemory() = default;

char* MulticastMemory::of_group(size_t group) const {
  return objects_[group] ? objects_[group]->data() : nullptr;
}

/// Creates the objects. The lowest member of each group creates its object, and the others get it by a file
/// descriptor. Collective.
void MulticastMemory::make_objects(World& world, const Imports& imports, const SwitchGroups& groups) {
  const int self = world.rank(), device = imports.devices()[size_t(self)].ordinal;
  objects_.resize(groups.size());
  world::DescriptorPassing passing(world);
  std::vector<Descriptor> shared;
  std::vector<int> numbers;
  std::vector<bool> wanted(size_t(world.ranks()));
  collective_try(world, [&] {
    for (size_t group = 0; group < groups.size(); ++group) {
      if (maker_of(groups[group]) != self) {
        if (is_member(groups[group], self)) wanted[size_t(maker_of(groups[group]))] = true;
        continue;
      }
      const CUmulticastObjectProp properties = properties_of(groups[group].size(), bytes_);
      CUmemGenericAllocationHandle handle = 0;
      check(multicast_driver().cuMulticastCreate(&handle, &properties),
            fmt::format("cuMulticastCreate of {} bytes on {} devices", bytes_, groups[group].size()));
      objects_[group] = std::make_unique<Object>(handle, device);
      shared.push_back(objects_[group]->share());
      numbers.push_back(shared.back().get());
    }
  });
  const std::vector<std::vector<Descriptor>> passed = passing.pass(world, numbers, wanted);
  collective_try(world, [&] {
    // Holds by maker the index of its next object, in the order of groups.
    std::vector<size_t> next(size_t(world.ranks()));
    for (size_t group = 0; group < groups.size(); ++group) {
      const size_t maker = size_t(maker_of(groups[group])), which = next[maker]++;
      if (objects_[group] || !is_member(groups[group], self)) continue;
      void* const descriptor = reinterpret_cast<void*>(uintptr_t(passed[maker].at(which).get()));
      CUmemGenericAllocationHandle handle = 0;
      check(driver().cuMemImportFromShareableHandle(&handle, descriptor,
                                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            "cuMemImportFromShareableHandle of a multicast object");
      objects_[group] = std::make_unique<Object>(handle, device);
    }
  });
}

}  // namespace chorale::cuda
