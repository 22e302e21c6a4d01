#include "tools/gpus.hpp"

#include <cstddef>

#include "tools/library.hpp"
#include "tools/nvml.hpp"

namespace chorale::tools {
namespace {

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
  std::string text_of(int error) const {
    const char* text = nullptr;
    const bool known = error_string && error_string(error, &text) == 0 && text;
    return (known ? std::string(text) : std::string("CUDA error")) + " (" + std::to_string(error) + ")";
  }
  /// Returns an attribute's value; 0 if the driver does not know it.
  int attribute_of(int device, DeviceAttribute which) const {
    int value = 0;
    return attribute(&value, int(which), device) == 0 ? value : 0;
  }
};

/// Loads the part of the CUDA driver that describes GPUs, at run time. So the build needs no toolkit, and the
/// command starts without a GPU.
CudaDriver load_cuda_driver() {
  CudaDriver driver;
  const Library library{"libcuda.so.1"};
  if (!library) {
    const bool absent = library.problem().find("No such file") != std::string::npos;
    driver.problem = absent ? "no driver on this machine" : "the driver does not load: " + library.problem();
    return driver;
  }
#define CHORALE_CUDA_FIND(member, symbol, ...) \
  driver.member = library.find<int(__VA_ARGS__)>(symbol); \
  if (!driver.member && driver.problem.empty()) \
    driver.problem = "the driver has no " symbol "; it is too old";
  CHORALE_CUDA_FUNCTIONS(CHORALE_CUDA_FIND)
#undef CHORALE_CUDA_FIND
  if (!driver.problem.empty()) return driver;
  if (const int error = driver.init(0))
    driver.problem = "the driver does not start: " + driver.text_of(error);
  return driver;
}

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
  void* managed = nullptr;
  if (!nvml.problem().empty() || nvml.call().device_by_bus(gpu.bus.c_str(), &managed) != 0) return gpu;
  unsigned long long total_free_used[3] = {};
  if (nvml.call().memory(managed, total_free_used) == 0) gpu.free_memory = total_free_used[1];
  gpu.nvlinks = int(nvml.active_links(managed).size());
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
  char own_version[96] = {};
  if (nvml.problem().empty() && nvml.call().driver_version(own_version, sizeof own_version) == 0)
    found.driver += std::string(", ") + own_version;
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
