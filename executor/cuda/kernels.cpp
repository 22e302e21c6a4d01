#include "kernels.hpp"

namespace chorale::cuda {

#define KERNEL(dtype) const void* interpreter_kernel_##dtype(uint32_t packet);
#include "kernel_dtypes.inc"  // a row for each dtype that was built
KERNEL(none)
#undef KERNEL

const void* interpreter_kernel(DType dtype, PacketForm packet, bool reduces) {
  if (!reduces) return interpreter_kernel_none(uint32_t(packet));
  switch (dtype) {
#define KERNEL(name) \
  case DType::name: \
    return interpreter_kernel_##name(uint32_t(packet));
#include "kernel_dtypes.inc"
#undef KERNEL
    default:
      return nullptr;
  }
}

}  // namespace chorale::cuda
