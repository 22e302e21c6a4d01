#include "tools/gpus.hpp"

#include "tools/cuda_driver.hpp"
#include "tools/nvml.hpp"

namespace chorale::tools {
namespace {

GpuFacts facts_of(const CudaDriver& driver, const Nvml& nvml, int device) {
  const auto has = [&](DeviceAttribute which) { return driver.attribute_of(device, which) != 0; };
  GpuFacts gpu;
  char text[256] = {};
  if (driver.name(text, sizeof text, device) == 0) gpu.name = text;
  char bus[32] = {};
  if (driver.bus_id(bus, sizeof bus, device) == 0) gpu.bus = bus;
  size_t memory = 0;
  if (driver.memory(&memory, device) == 0) gpu.memory = memory;
  gpu.capability = 10 * driver.attribute_of(device, DeviceAttribute::capability_major) +
                   driver.attribute_of(device, DeviceAttribute::capability_minor);
  gpu.sms = driver.attribute_of(device, DeviceAttribute::multiprocessors);
  gpu.threads_per_sm = driver.attribute_of(device, DeviceAttribute::threads_per_multiprocessor);
  gpu.ipc = has(DeviceAttribute::unified_addressing) && has(DeviceAttribute::ipc_events);
  gpu.vmm = has(DeviceAttribute::virtual_memory);
  gpu.posix_fd = has(DeviceAttribute::posix_descriptors);
  gpu.fabric = has(DeviceAttribute::fabric_handles);
  gpu.multicast = has(DeviceAttribute::multicast);
  constexpr int mode_prohibited = 2;
  gpu.prohibited = driver.attribute_of(device, DeviceAttribute::compute_mode) == mode_prohibited;
  gpu.free_memory = nvml.free_memory(gpu.bus);
  gpu.nvlinks = nvml.active_links(gpu.bus);
  return gpu;
}

std::string version_text(int version) {
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

GpusFound find_gpus() {
  GpusFound found;
  const CudaDriver driver = load_cuda_driver();
  int version = 0, devices = 0;
  // A driver reports its version even if it does not start.
  if (driver.driver_version && driver.driver_version(&version) == 0) found.driver = version_text(version);
  found.problem = driver.problem;
  if (!found.problem.empty()) return found;
  if (const int error = driver.device_count(&devices)) found.problem = driver.text_of(error);
  if (found.problem.empty() && devices == 0) found.problem = "the driver finds no GPU";
  if (!found.problem.empty()) return found;

  const Nvml nvml;
  found.nvml_problem = nvml.problem();
  if (const std::string own = nvml.driver_version(); !own.empty()) found.driver += ", " + own;
  std::vector<int> handles;
  for (int ordinal = 0; ordinal < devices; ++ordinal) {
    int device = 0;
    if (driver.device(&device, ordinal) != 0) continue;
    handles.push_back(device);
    found.gpus.push_back(facts_of(driver, nvml, device));
  }
  for (const int from : handles) {
    found.reaches.emplace_back();
    for (const int to : handles) {
      int can = from == to;
      if (from != to && driver.can_access_peer(&can, from, to) != 0) can = 0;
      found.reaches.back().push_back(can != 0);
    }
  }
  return found;
}

}  // namespace chorale::tools
