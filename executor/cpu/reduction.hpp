/// \file
/// A plan's operator and element type are fixed when it is bound. So there is one indirect call per span of
/// about two kilobytes, instead of a transfer loop for every type, operator, source and sink.
#pragma once

#include <cstdint>
#include <type_traits>

#include "chorale/device/lines.hpp"
#include "chorale/device/reduce.hpp"
#include "chorale/factor.hpp"
#include "chorale/types.hpp"

namespace chorale::cpu {

/// Reads one source of a sum: plain memory, or packets if `plain` is null.
template <class P>
struct Either {
  const Mem* plain = nullptr;
  const Packets<P>* packets = nullptr;

  static constexpr bool waits = true;
  static constexpr bool by_line = detail::by_line<Packets<P>>;
  uint64_t run(uint64_t at) const { return plain ? plain->run(at) : packets->run(at); }
  Stop view(const Group& group, uint64_t at, uint64_t bytes, char* room, const char*& seen) const {
    return plain ? plain->view(group, at, bytes, room, seen) : packets->view(group, at, bytes, room, seen);
  }
};

/// Combines `first` and then `others`, as Reduced does.
template <class Source>
struct AnyReduced {
  using View = Stop (*)(const AnyReduced&, const Group&, uint64_t at, uint64_t bytes, char* room,
                        const char*& seen);

  View combine;
  Source first;
  const Source* others;
  uint32_t n;

  static constexpr bool waits = Source::waits;
  static constexpr bool by_line = detail::by_line<Source>;
  uint64_t run(uint64_t) const { return 0; }
  Stop view(const Group& group, uint64_t at, uint64_t bytes, char* room, const char*& seen) const {
    return combine(*this, group, at, bytes, room, seen);
  }
};

/// Holds the functions for one operator and type.
struct Reduction {
  AnyReduced<Mem>::View plain;
  AnyReduced<Either<LL8>>::View ll8;
  AnyReduced<Either<LL16>>::View ll16;
  AnyReduced<Either<LL128>>::View ll128;
  /// Divides `elements` elements at `data` by n, in the accumulation type, rounded once.
  void (*divide)(char* data, uint64_t elements, uint32_t n);

  template <class Source>
  auto view() const {
    if constexpr (std::is_same_v<Source, Mem>) {
      return plain;
    } else if constexpr (std::is_same_v<Source, Either<LL8>>) {
      return ll8;
    } else if constexpr (std::is_same_v<Source, Either<LL16>>) {
      return ll16;
    } else {
      return ll128;
    }
  }
};

/// Returns the functions for one operator and type. For avg they sum; divide() comes at the end.
const Reduction& reduction(ReduceOp op, DType type);

/// Multiplies as Executor::scale() says. It reads the factor once, at the beginning.
void scale(void* out, const void* in, uint64_t elements, DType dtype, const Factor& factor);

}  // namespace chorale::cpu
