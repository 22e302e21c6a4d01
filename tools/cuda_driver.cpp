#include "tools/cuda_driver.hpp"

#include "tools/library.hpp"

namespace chorale::tools {

std::string CudaDriver::text_of(int error) const {
  const char* text = nullptr;
  const bool known = error_string && error_string(error, &text) == 0 && text;
  return (known ? std::string(text) : std::string("CUDA error")) + " (" + std::to_string(error) + ")";
}

int CudaDriver::attribute_of(int device, DeviceAttribute which) const {
  int value = 0;
  return attribute(&value, int(which), device) == 0 ? value : 0;
}

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

}  // namespace chorale::tools
