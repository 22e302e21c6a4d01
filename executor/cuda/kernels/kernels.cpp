#include "kernels.hpp"

namespace chorale::cuda {

#define KERNEL(dtype) Interpreters interpreters_##dtype(uint32_t packet);
#include "kernel_dtypes.inc"  // one row per dtype that was built
KERNEL(none)
#undef KERNEL

#define KERNEL(dtype) const void* multicast_interpreter_##dtype();
#include "multicast_dtypes.inc"  // one row per dtype of these that multimem.def has
KERNEL(none)
#undef KERNEL

#define KERNEL(dtype) const void* coded_interpreter_##dtype();
#include "coded_dtypes.inc"  // one row per dtype of these whose elements can be encoded
#undef KERNEL

Interpreters interpreters_of(DType dtype, PacketForm packet, bool reduces) {
  if (!reduces) return interpreters_none(uint32_t(packet));
  switch (dtype) {
#define KERNEL(name) \
  case DType::name: \
    return interpreters_##name(uint32_t(packet));
#include "kernel_dtypes.inc"
#undef KERNEL
    default:
      return {};
  }
}

const void* multicast_interpreter_of(DType dtype, PacketForm packet, bool reduces) {
  if (packet != PacketForm::ll16) return nullptr;
  if (!reduces) return multicast_interpreter_none();
  switch (dtype) {
#define KERNEL(name) \
  case DType::name: \
    return multicast_interpreter_##name();
#include "multicast_dtypes.inc"
#undef KERNEL
    default:
      return nullptr;
  }
}

const void* coded_interpreter_of(DType dtype, PacketForm packet) {
  if (packet != PacketForm::ll16) return nullptr;
  switch (dtype) {
#define KERNEL(name) \
  case DType::name: \
    return coded_interpreter_##name();
#include "coded_dtypes.inc"
#undef KERNEL
    default:
      return nullptr;
  }
}

}  // namespace chorale::cuda
