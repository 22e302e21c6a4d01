#include "in_device_memory.hpp"
#include "kinds.hpp"

namespace chorale::transport {
namespace {

[[noreturn]] void refuse_to(const char* what) {
  throw Unsupported(std::string(what) + " in device memory: this build has no CUDA backend");
}

}  // namespace

#define CHORALE_TRANSPORT(name) \
  std::unique_ptr<Transport> name##_in_device_memory(World&, const Geometry&) { \
    refuse_to("a transport of kind " #name); \
  }
#include "chorale/transports.def"
std::shared_ptr<const void> device_copy(const void*, uint64_t) { refuse_to("a table"); }
std::unique_ptr<DeviceWindow> device_window(World&, uint64_t) { refuse_to("a window"); }

}  // namespace chorale::transport
