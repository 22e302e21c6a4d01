/// \file
/// Calls NVML, the management library of NVIDIA's driver. Its header is not needed: what we use of it is
/// declared here.
#pragma once

#include <string>
#include <vector>

namespace chorale::tools {

// Each row is FUNCTION(member, symbol, arguments). All functions return an nvmlReturn_t; 0 is success.
// Devices are opaque.
#define CHORALE_NVML_FUNCTIONS(FUNCTION) \
  FUNCTION(init, "nvmlInit_v2", void) \
  FUNCTION(shutdown, "nvmlShutdown", void) \
  FUNCTION(driver_version, "nvmlSystemGetDriverVersion", char* text, unsigned bytes) \
  FUNCTION(count, "nvmlDeviceGetCount_v2", unsigned* count) \
  FUNCTION(device, "nvmlDeviceGetHandleByIndex_v2", unsigned index, void** device) \
  FUNCTION(device_by_bus, "nvmlDeviceGetHandleByPciBusId_v2", const char* bus, void** device) \
  FUNCTION(memory, "nvmlDeviceGetMemoryInfo", void* device, unsigned long long* total_free_used) \
  FUNCTION(pci, "nvmlDeviceGetPciInfo_v3", void* device, PciInfo* info) \
  FUNCTION(generation, "nvmlDeviceGetMaxPcieLinkGeneration", void* device, unsigned* generation) \
  FUNCTION(width, "nvmlDeviceGetMaxPcieLinkWidth", void* device, unsigned* lanes) \
  FUNCTION(link_state, "nvmlDeviceGetNvLinkState", void* device, unsigned link, int* active) \
  FUNCTION(link_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2", void* device, unsigned link, PciInfo* info) \
  FUNCTION(fields, "nvmlDeviceGetFieldValues", void* device, int count, FieldValue* values)

/// Loads NVML at run time and starts it until the object ends.
class Nvml {
 public:
  /// Has the layout of nvmlPciInfo_t.
  struct PciInfo {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char id[32];
  };
  static_assert(sizeof(PciInfo) == 68);

  /// Has the layout of nvmlFieldValue_t.
  struct FieldValue {
    unsigned field, scope;
    long long timestamp, latency;
    unsigned type, error;
    union {
      double real;
      unsigned number;
      unsigned long long long_number;
    };
  };
  static_assert(sizeof(FieldValue) == 40);

  struct Functions {
#define CHORALE_NVML_MEMBER(member, symbol, ...) int (*member)(__VA_ARGS__) = nullptr;
    CHORALE_NVML_FUNCTIONS(CHORALE_NVML_MEMBER)
#undef CHORALE_NVML_MEMBER
  };

  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  const std::string& problem() const { return problem_; }  ///< the reason why it cannot be used; "" if it can

  /// Returns the functions, which may be called if there is no problem.
  const Functions& call() const { return call_; }
  /// Returns the numbers of the NVLinks that are up, if there is no problem.
  std::vector<unsigned> active_links(void* device) const;

 private:
  Functions call_;
  std::string problem_;
};

}  // namespace chorale::tools
