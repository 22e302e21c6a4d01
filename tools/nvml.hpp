/// \file
/// Loads the part of NVML, the management library, that reports links and free memory. It loads it at run
/// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace chorale::tools {

// Each row is FUNCTION(member, symbol, arguments). All functions return an nvmlReturn_t; 0 is success.
// Devices are opaque.
#define CHORALE_NVML_FUNCTIONS(FUNCTION) \
  FUNCTION(init, "nvmlInit_v2", void) \
  FUNCTION(shutdown, "nvmlShutdown", void) \
  FUNCTION(driver_version, "nvmlSystemGetDriverVersion", char* text, unsigned bytes) \
  FUNCTION(device_by_bus, "nvmlDeviceGetHandleByPciBusId_v2", const char* bus, void** device) \
  FUNCTION(memory, "nvmlDeviceGetMemoryInfo", void* device, unsigned long long* total_free_used) \
  FUNCTION(link_state, "nvmlDeviceGetNvLinkState", void* device, unsigned link, int* active)

class Nvml {
 public:
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  const std::string& problem() const { return problem_; }  ///< the reason why it cannot be used; "" if it can
  std::string driver_version() const;                      ///< "580.65.06"
  std::optional<uint64_t> free_memory(const std::string& bus) const;
  std::optional<int> active_links(const std::string& bus) const;

 private:
  void* device(const std::string& bus) const;

  struct {
#define CHORALE_NVML_MEMBER(member, symbol, ...) int (*member)(__VA_ARGS__) = nullptr;
    CHORALE_NVML_FUNCTIONS(CHORALE_NVML_MEMBER)
#undef CHORALE_NVML_MEMBER
  } call_;
  std::string problem_;
};

}  // namespace chorale::tools
