#include "kernels.hpp"

namespace chorale::cuda {

#define KERNEL(dtype) Players players_##dtype(uint32_t packet);
#include "kernel_dtypes.inc"  // a row for each dtype that was built
KERNEL(none)
#undef KERNEL

#define KERNEL(dtype) const void* multicast_player_##dtype();
#include "multicast_dtypes.inc"  // of these, a row for each that multimem.def has
KERNEL(none)
#undef KERNEL

Players players_of(DType dtype, PacketForm packet, bool reduces) {
  if (!reduces) return players_none(uint32_t(packet));
  switch (dtype) {
#define KERNEL(name) \
  case DType::name: \
    return players_##name(uint32_t(packet));
#include "kernel_dtypes.inc"
#undef KERNEL
    default:
      return {};
  }
}

const void* multicast_player_of(DType dtype, PacketForm packet, bool reduces) {
  if (packet != PacketForm::ll16) return nullptr;
  if (!reduces) return multicast_player_none();
  switch (dtype) {
#define KERNEL(name) \
  case DType::name: \
    return multicast_player_##name();
#include "multicast_dtypes.inc"
#undef KERNEL
    default:
      return nullptr;
  }
}

}  // namespace chorale::cuda
