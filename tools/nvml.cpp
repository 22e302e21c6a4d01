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

std::vector<unsigned> Nvml::active_links(void* device) const {
  constexpr unsigned most_links = 36;  // an H200 has 18; NVML reports an error for links that are not there
  std::vector<unsigned> links;
  for (unsigned link = 0; link < most_links; ++link) {
    int active = 0;
    if (call_.link_state(device, link, &active) == 0 && active) links.push_back(link);
  }
  return links;
}

}  // namespace chorale::tools
