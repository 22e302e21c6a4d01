/// \file
/// Maps a packet form to its type.
#pragma once

#include <cstdint>

#include "chorale/device/lines.hpp"
#include "chorale/device/numeric.hpp"
#include "chorale/packet_form.hpp"

namespace chorale::lowering {

template <class P>
constexpr bool stores_as(PacketForm form) {
  return payload_of(form).bytes == packet_payload<P> && payload_of(form).stored == packet_slots<P>;
}
static_assert(stores_as<LL8>(PacketForm::ll8) && stores_as<LL16>(PacketForm::ll16) &&
              stores_as<LL128>(PacketForm::ll128));

/// Calls f(TypeTag<P>{}) with the packet type that `form` names, and returns its result.
template <class F>
auto with_packet_form(PacketForm form, const F& f) {
  switch (form) {
    case PacketForm::ll8:
      return f(TypeTag<LL8>{});
    case PacketForm::ll16:
      return f(TypeTag<LL16>{});
    case PacketForm::ll128:
      break;
  }
  return f(TypeTag<LL128>{});
}

/// Returns packet_bytes() for the form.
inline uint64_t packet_bytes_of(PacketForm form, uint64_t bytes) {
  return with_packet_form(form,
                          [bytes](auto tag) { return packet_bytes<typename decltype(tag)::type>(bytes); });
}

}  // namespace chorale::lowering
