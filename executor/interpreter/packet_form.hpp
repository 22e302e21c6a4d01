/// \file
/// From a form of packets to its type.
#pragma once

#include "chorale/device/lines.hpp"
#include "chorale/device/numeric.hpp"
#include "chorale/executor.hpp"

namespace chorale::interpreter {

/// Calls f(TypeTag<P>{}) with the type of packets that `form` names, and gives what it gives.
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

}  // namespace chorale::interpreter
