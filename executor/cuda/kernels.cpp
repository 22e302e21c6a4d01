#include "kernels.hpp"

#include <array>

namespace chorale::cuda {

#define CHORALE_KERNELS(KERNEL) \
  KERNEL(f32) KERNEL(f16) KERNEL(bf16) KERNEL(f64) KERNEL(i32) KERNEL(u32) KERNEL(i64) KERNEL(u8) KERNEL(i8) \
  KERNEL(fp8_e4m3) KERNEL(fp8_e5m2)

#define KERNEL(dtype) const void* interpreter_kernel_##dtype(uint32_t packet);
CHORALE_KERNELS(KERNEL)
KERNEL(none)
#undef KERNEL

const void* interpreter_kernel(DType dtype, PacketForm packet, bool reduces) {
  if (!reduces) return interpreter_kernel_none(uint32_t(packet));
  switch (dtype) {
#define KERNEL(name) \
  case DType::name: \
    return interpreter_kernel_##name(uint32_t(packet));
    CHORALE_KERNELS(KERNEL)
#undef KERNEL
  }
  return nullptr;
}

}  // namespace chorale::cuda
