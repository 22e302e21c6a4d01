#pragma once
// With these sources and sinks, a transfer can read from a hook or write to one; see endpoints.hpp.

#include <cstdint>
#include <cstring>

#include "chorale/device/endpoints.hpp"
#include "chorale/device/engine.hpp"
#include "chorale/device/hooks.hpp"

namespace chorale {

namespace detail {
/// Returns `ctx` for the vector of `bytes` valid bytes that begins `at` bytes into the transfer.
template <class T, class X>
CHORALE_FN Ctx<X> vector_at(const Ctx<X>& ctx, uint64_t at, uint32_t bytes) {
  Ctx<X> here = ctx;
  here.index += at / sizeof(T);
  here.pos += at / sizeof(T);
  here.count = bytes / uint32_t(sizeof(T));
  return here;
}
}  // namespace detail

/// Is the source that reads what a value hook makes. `ctx` is for the transfer's first element.
template <class T, class Hook, class X>
struct Produced {
  static_assert(unit_bytes % sizeof(T) == 0, "value hooks make whole units: use a block hook");

  const Hook& hook;
  const Ctx<X>& ctx;

  static constexpr bool waits = false;
  static constexpr uint32_t at_once = 4;

  CHORALE_FN Unit unit(uint64_t at, uint32_t bytes) const {
    return unit_of<T>(hook.produce(detail::vector_at<T>(ctx, at, bytes)));
  }

#if defined(__CUDACC__)
  using Loaded = Unit;

  CHORALE_FN bool may_take_several() const { return true; }
  CHORALE_FN bool whole(uint64_t) const { return true; }

  template <bool Whole, uint32_t N>
  CHORALE_FN Stop read(const Group&, const Turn& turn, Unit (&to)[N]) const {
#pragma unroll
    for (uint32_t index = 0; index < N; ++index) {
      to[index] = Unit{};
      if (index < turn.n) {
        to[index] = unit((turn.unit + index * turn.stride) * unit_bytes, Whole ? unit_bytes : turn.bytes);
      }
    }
    return Stop::none;
  }
#else
  uint64_t run(uint64_t) const { return 0; }

  Stop view(const Group&, uint64_t at, uint64_t bytes, char* room, const char*& seen) const {
    for (uint64_t done = 0; done < bytes; done += unit_bytes) {
      const uint64_t left = bytes - done;
      const Unit made = unit(at + done, uint32_t(left < unit_bytes ? left : unit_bytes));
      std::memcpy(room + done, &made, unit_bytes);
    }
    seen = room;
    return Stop::none;
  }
#endif
};

/// Is the sink that hands the data to a value hook. `ctx` is for the transfer's first element.
template <class T, class Hook, class X>
struct Consumed {
  static_assert(unit_bytes % sizeof(T) == 0, "value hooks take whole units: use a block hook");

  const Hook& hook;
  const Ctx<X> ctx;  // a copy, because this may outlive the caller's

  CHORALE_FN void take(uint64_t at, uint32_t bytes, const Unit& unit) const {
    hook.consume(detail::vector_at<T>(ctx, at, bytes), elements_of<T>(unit));
  }

#if defined(__CUDACC__)
  CHORALE_FN bool whole(uint64_t) const { return true; }

  template <bool Whole, uint32_t N>
  CHORALE_FN void write(const Turn& turn, const Unit (&from)[N]) const {
#pragma unroll
    for (uint32_t index = 0; index < N; ++index) {
      if (index < turn.n) {
        take((turn.unit + index * turn.stride) * unit_bytes, Whole ? unit_bytes : turn.bytes, from[index]);
      }
    }
  }
#else
  void put(uint64_t at, uint64_t bytes, const char* from) const {
    for (uint64_t done = 0; done < bytes; done += unit_bytes) {
      const uint64_t left = bytes - done;
      // Nothing past the end may be read.
      const uint32_t here = uint32_t(left < unit_bytes ? left : unit_bytes);
      take(at + done, here, load_unit(from + done, here));
    }
  }
#endif
};

/// Is the source that reads memory and changes the data by a value hook's forward().
template <class T, class Hook, class X>
struct Forwarded {
  Mem from;
  const Hook& hook;
  const Ctx<X>& ctx;

  static constexpr bool waits = false;
  static constexpr uint32_t at_once = 4;

  CHORALE_FN Unit change(uint64_t at, uint32_t bytes, const Unit& unit) const {
    return unit_of<T>(hook.forward(detail::vector_at<T>(ctx, at, bytes), elements_of<T>(unit)));
  }

#if defined(__CUDACC__)
  using Loaded = Unit;

  CHORALE_FN bool may_take_several() const { return true; }
  CHORALE_FN bool whole(uint64_t bytes) const { return from.whole(bytes); }

  template <bool Whole, uint32_t N>
  CHORALE_FN Stop read(const Group& group, const Turn& turn, Unit (&to)[N]) const {
    from.template read<Whole, N>(group, turn, to);
#pragma unroll
    for (uint32_t index = 0; index < N; ++index) {
      if (index < turn.n) {
        to[index] = change((turn.unit + index * turn.stride) * unit_bytes, Whole ? unit_bytes : turn.bytes,
                           to[index]);
      }
    }
    return Stop::none;
  }
#else
  uint64_t run(uint64_t) const { return 0; }

  Stop view(const Group& group, uint64_t at, uint64_t bytes, char* room, const char*& seen) const {
    from.view(group, at, bytes, room, seen);
    for (uint64_t done = 0; done < bytes; done += unit_bytes) {
      const uint64_t left = bytes - done;
      const Unit changed =
          change(at + done, uint32_t(left < unit_bytes ? left : unit_bytes), load_unit(seen + done));
      std::memcpy(room + done, &changed, unit_bytes);
    }
    seen = room;
    return Stop::none;
  }
#endif
};

}  // namespace chorale
