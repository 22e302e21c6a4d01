#include "tools/nvml.hpp"

#include "tools/library.hpp"

namespace chorale::tools {

Nvml::Nvml() {
  const Library library{"libnvidia-ml.so.1"};
  if (!library) {
    problem_ = "libnvidia-ml.so.1 does not load";
    return;
  }
#define CHORALE_NVML_FIND(member, symbol, ...) \
  call_.member = library.find<int(__VA_ARGS__)>(symbol); \
  if (!call_.member && problem_.empty()) problem_ = "libnvidia-ml.so.1 has no " symbol;
  CHORALE_NVML_FUNCTIONS(CHORALE_NVML_FIND)
#undef CHORALE_NVML_FIND
  if (!problem_.empty()) return;
  if (const int error = call_.init()) problem_ = "nvmlInit_v2 says " + std::to_string(error);
}

Nvml::~Nvml() {
  if (problem_.empty()) call_.shutdown();
}

void* Nvml::device(const std::string& bus) const {
  void* found = nullptr;
  return problem_.empty() && call_.device_by_bus(bus.c_str(), &found) == 0 ? found : nullptr;
}

std::string Nvml::driver_version() const {
  char text[96] = {};
  return problem_.empty() && call_.driver_version(text, sizeof text) == 0 ? text : "";
}

std::optional<uint64_t> Nvml::free_memory(const std::string& bus) const {
  void* const found = device(bus);
  unsigned long long total_free_used[3] = {};
  if (!found || call_.memory(found, total_free_used) != 0) return std::nullopt;
  return total_free_used[1];
}

std::optional<int> Nvml::active_links(const std::string& bus) const {
  void* const found = device(bus);
  if (!found) return std::nullopt;
  constexpr unsigned most_links = 36;  // an H200 has 18; NVML reports an error for links that are not there
  int links = 0;
  for (unsigned link = 0; link < most_links; ++link) {
    int active = 0;
    if (call_.link_state(found, link, &active) == 0 && active) ++links;
  }
  return links;
}

}  // namespace chorale::tools
