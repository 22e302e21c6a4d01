/// \file
/// A reduction's operator and element type are known when a plan is bound. So there is one indirect call per
/// span of about two kilobytes, instead of a transfer loop for every type, operator, source and sink.
#pragma once

#include <cstdint>
#include <type_traits>

#include "chorale/device/lines.hpp"
#include "chorale/device/reduce.hpp"

namespace chorale::cpu {

/// A source that combines `first` and then `others`, as Reduced does.
template <class First, class Other>
struct AnyReduced {
  using View = Stop (*)(const AnyReduced&, const Group&, uint64_t at, uint64_t bytes, char* room,
                        const char*& seen);

  View combine;
  First first;
  const Other* others;
  uint32_t n;

  static constexpr bool waits = First::waits || Other::waits;
  static constexpr bool by_line = detail::by_line<First> || detail::by_line<Other>;
  uint64_t run(uint64_t) const { return 0; }
  Stop view(const Group& group, uint64_t at, uint64_t bytes, char* room, const char*& seen) const {
    return combine(*this, group, at, bytes, room, seen);
  }
};

/// A source that combines the same place at all members of a switch channel, as Multi does.
struct AnyMulti {
  using View = Stop (*)(const AnyMulti&, const Group&, uint64_t at, uint64_t bytes, char* room,
                        const char*& seen);

  View combine;
  char* const* members;
  uint32_t n;
  uint64_t offset, valid;

  static constexpr bool waits = false;
  uint64_t run(uint64_t) const { return 0; }
  Stop view(const Group& group, uint64_t at, uint64_t bytes, char* room, const char*& seen) const {
    return combine(*this, group, at, bytes, room, seen);
  }
};

/// The functions of one operator and type for packets.
template <class P>
struct PacketReduction {
  typename AnyReduced<Mem, Packets<P>>::View behind_plain;
  typename AnyReduced<Packets<P>, Packets<P>>::View only;
};

/// The functions of one operator and type.
struct Reduction {
  AnyReduced<Mem, Mem>::View plain;
  PacketReduction<LL8> ll8;
  PacketReduction<LL16> ll16;
  PacketReduction<LL128> ll128;
  AnyMulti::View multi;
  /// Divides `elements` elements at `data` by n, in the accumulation type, rounded once.
  void (*divide)(char* data, uint64_t elements, uint32_t n);

  template <class First, class Other>
  auto view() const {
    if constexpr (std::is_same_v<Other, Mem>) {
      return plain;
    } else if constexpr (std::is_same_v<First, Mem>) {
      return packets<Other>().behind_plain;
    } else {
      return packets<Other>().only;
    }
  }

  template <class Other>
  const auto& packets() const {
    if constexpr (std::is_same_v<Other, Packets<LL8>>) {
      return ll8;
    } else if constexpr (std::is_same_v<Other, Packets<LL16>>) {
      return ll16;
    } else {
      return ll128;
    }
  }
};

/// Returns the functions of one operator and type. For avg they sum; divide() comes at the end.
const Reduction& reduction(ReduceOp op, DType type);

}  // namespace chorale::cpu
