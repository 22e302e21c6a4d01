#include "device.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>

#include "driver.hpp"
#include "error.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/process.hpp"

namespace chorale::cuda {
namespace {

RankDevice describe(int ordinal) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  RankDevice device;
  device.ordinal = ordinal;
  static_assert(sizeof properties.uuid.bytes == sizeof device.uuid);
  std::memcpy(device.uuid.data(), properties.uuid.bytes, device.uuid.size());
  check(cudaDeviceGetPCIBusId(device.bus_id.data(), int(device.bus_id.size()), ordinal),
        "cudaDeviceGetPCIBusId");
  std::memcpy(device.name.data(), properties.name, device.name.size() - 1);
  device.process = world::this_process();
  return device;
}

/// Returns this process's ordinal for a peer's device, or -1 if it cannot see the device.
int ordinal_here(const RankDevice& peer, const world::Process& self) {
  if (peer.process == self) return peer.ordinal;
  int ordinal = -1;
  if (cudaDeviceGetByPCIBusId(&ordinal, peer.bus_id.data()) == cudaSuccess) return ordinal;
  cudaGetLastError();
  return -1;
}

void enable_access(int peer_ordinal, int rank) {
  const cudaError_t result = cudaDeviceEnablePeerAccess(peer_ordinal, 0);
  if (result == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
    return;
  }
  check(result, fmt::format("cudaDeviceEnablePeerAccess to device {} of rank {}", peer_ordinal, rank));
}

void reach(const std::vector<RankDevice>& devices, int self, int peer) {
  const RankDevice &mine = devices[self], &theirs = devices[peer];
  if (mine.same_device(theirs)) {
    if (self < peer) spdlog::debug("ranks {} and {} share {}", self, peer, mine.text());
    return;
  }
  const int ordinal = ordinal_here(theirs, mine.process);
  if (ordinal < 0) return;  // hidden by CUDA_VISIBLE_DEVICES; mapping its memory will show whether it works
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, mine.ordinal, ordinal), "cudaDeviceCanAccessPeer");
  if (!can) {
    throw RunError(
        RunError::Reason::other,
        fmt::format("{} of rank {} cannot reach the memory of {} of rank {}; use GPUs that are linked "
                    "(nvidia-smi topo -p2p rw), or switch ACS and IOMMU redirection off",
                    mine.text(), self, theirs.text(), peer));
  }
  if (mine.process == theirs.process) enable_access(ordinal, peer);
}

}  // namespace

CurrentDevice::CurrentDevice(int device) {
  check(cudaGetDevice(&before_), "cudaGetDevice");
  // Every run calls this, so the message is made only if it is needed.
  if (const cudaError_t result = cudaSetDevice(device); result != cudaSuccess)
    check(result, fmt::format("cudaSetDevice({})", device));
}

CurrentDevice::~CurrentDevice() { check_quietly(cudaSetDevice(before_), "cudaSetDevice"); }

OutsideCapture::OutsideCapture() {
  check(cudaThreadExchangeStreamCaptureMode(&before_), "cudaThreadExchangeStreamCaptureMode");
}

OutsideCapture::~OutsideCapture() {
  check_quietly(cudaThreadExchangeStreamCaptureMode(&before_), "cudaThreadExchangeStreamCaptureMode");
}

int current_device() {
  int device = -1;
  check(cudaGetDevice(&device), "cudaGetDevice");
  // The driver's functions need the context, which the runtime makes at the first call that needs it.
  check(cudaSetDevice(device), fmt::format("cudaSetDevice({})", device));
  check(cudaFree(nullptr), fmt::format("making the context of device {}", device));
  return device;
}

void require_readable(const void* at, std::string_view name, int device) {
  unsigned type = 0;
  CUpointer_attribute what[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
  void* to[] = {&type};
  if (!at ||
      driver().cuPointerGetAttributes(1, what, to, reinterpret_cast<CUdeviceptr>(at)) != CUDA_SUCCESS ||
      type != 0)
    return;
  int pageable = 0;
  check(cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, device),
        "asking whether a GPU reads pageable memory");
  if (pageable) return;
  throw UsageError(
      fmt::format("CUDA does not know the {} at {}: it is pageable memory of the host, or was "
                  "freed; pass memory of GPU {}",
                  name, at, device));
}

std::string RankDevice::text() const {
  return fmt::format("{} {} (device {})", name.data(), bus_id.data(), ordinal);
}

std::vector<RankDevice> gather_devices(World& world) {
  RankDevice mine;
  world::collective_try(world, [&] { mine = describe(current_device()); });
  std::vector<RankDevice> devices;
  for (const auto& bytes : world.allgather(world::bytes_of(mine))) {
    devices.push_back(world::read_as<RankDevice>(bytes));
  }
  world::collective_try(world, [&] {
    for (int peer = 0; peer < world.ranks(); ++peer) {
      if (peer != world.rank() && world.group().on_one_host(world.rank(), peer))
        reach(devices, world.rank(), peer);
    }
  });
  return devices;
}

bool stores_whole_lines(const RankDevice& mine, const RankDevice& peer) {
  if (peer.same_device(mine)) return true;
  int other = -1, native = 0;
  const bool known = cudaDeviceGetByPCIBusId(&other, peer.bus_id.data()) == cudaSuccess &&
                     cudaDeviceGetP2PAttribute(&native, cudaDevP2PAttrNativeAtomicSupported, mine.ordinal,
                                               other) == cudaSuccess;
  cudaGetLastError();  // not a failure: this process may not see the device
  return known && native != 0;
}

bool whole_lines_everywhere(World& world, const std::vector<RankDevice>& devices) {
  const RankDevice& mine = devices[size_t(world.rank())];
  const bool here = !world.group().several_hosts() &&
                    std::all_of(devices.begin(), devices.end(),
                                [&](const RankDevice& peer) { return stores_whole_lines(mine, peer); });
  const auto all = world.allgather(world::bytes_of(here));
  return std::all_of(all.begin(), all.end(), [](const auto& bytes) { return world::read_as<bool>(bytes); });
}

}  // namespace chorale::cuda
