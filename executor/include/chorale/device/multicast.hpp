#pragma once
// A multicast address reaches the memory of all members of a switch channel at once. A load from it returns
// the members' data combined by the switch (NVLink SHARP), and a store goes to all members. The address
// belongs to a mapped multicast object of CUDA (cuMulticastCreate) and needs compute capability 9.0. This
// code is compiled, and its instructions are checked, but it has not run on hardware.
//
// Use a multicast address only through these functions. They move whole units: the address and the size of a
// transfer are multiples of 16. The rest of the data goes through the members' own addresses.
//
// To the memory model a multicast address is an alias of the members' own addresses. A fence_alias() must
// order accesses by different aliases. Call it before a thread reads data that was stored by another alias.
// Call it also after a thread has stored or read data that is accessed by another alias next.
//
// The switch combines in an order that is not specified, so floats may get other bits than those of Multi.
// When an operand of `min` or `max` is a NaN, either operand may be the result.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "chorale/device/endpoints.hpp"
#include "chorale/device/numeric.hpp"

#if defined(__CUDACC__)

namespace chorale {

/// Orders this thread's earlier accesses, by any address, before its later ones by other addresses of the
/// same memory.
CHORALE_FN void fence_alias() { asm volatile("fence.proxy.alias;" ::: "memory"); }

namespace detail {

/// Loads a unit of all members, combined by the switch. `exists` is true if the switch has this operation.
template <ReduceOp Op, class T>
struct LoadReduce {
  static constexpr bool exists = false;
};

#define CHORALE_MULTIMEM_LOAD(instruction) "multimem.ld_reduce.relaxed.sys.global." instruction
#define CHORALE_MULTIMEM_quad(instruction) \
  asm volatile(CHORALE_MULTIMEM_LOAD(instruction) " {%0, %1, %2, %3}, [%4];" \
               : "=r"(unit.item[0]), "=r"(unit.item[1]), "=r"(unit.item[2]), "=r"(unit.item[3]) \
               : "l"(from) \
               : "memory");
#define CHORALE_MULTIMEM_words(instruction) \
  _Pragma("unroll") for (uint32_t word = 0; word < 4; ++word) { \
    asm volatile(CHORALE_MULTIMEM_LOAD(instruction) " %0, [%1];" \
                 : "=r"(unit.item[word]) \
                 : "l"(from + 4 * word) \
                 : "memory"); \
  }
#define CHORALE_MULTIMEM_pairs(instruction) \
  uint64_t pairs[2]; \
  _Pragma("unroll") for (uint32_t pair = 0; pair < 2; ++pair) { \
    if constexpr (std::is_same_v<Element, double>) { \
      double value; \
      asm volatile(CHORALE_MULTIMEM_LOAD(instruction) " %0, [%1];" \
                   : "=d"(value) \
                   : "l"(from + 8 * pair) \
                   : "memory"); \
      std::memcpy(&pairs[pair], &value, sizeof value); \
    } else { \
      asm volatile(CHORALE_MULTIMEM_LOAD(instruction) " %0, [%1];" \
                   : "=l"(pairs[pair]) \
                   : "l"(from + 8 * pair) \
                   : "memory"); \
    } \
  } \
  std::memcpy(&unit, pairs, sizeof unit);

#define CHORALE_MULTIMEM(dtype, element, op, shape, instruction) \
  template <> \
  struct LoadReduce<ReduceOp::op, element> { \
    using Element = element; \
    static constexpr bool exists = true; \
    CHORALE_FN static Unit of(const char* from) { \
      Unit unit; \
      CHORALE_MULTIMEM_##shape(instruction) return unit; \
    } \
  };
#include "chorale/device/multimem.def"
#undef CHORALE_MULTIMEM_LOAD
#undef CHORALE_MULTIMEM_quad
#undef CHORALE_MULTIMEM_words
#undef CHORALE_MULTIMEM_pairs

/// Stores a unit in the memory of all members. It stores the bits of any element type, though the instruction
/// has a vector of floats.
CHORALE_FN void store_multicast(char* to, const Unit& unit) {
  asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(unit.item[0]),
               "r"(unit.item[1]), "r"(unit.item[2]), "r"(unit.item[3])
               : "memory");
}

}  // namespace detail

/// Is the source that reads the data of all members, combined by the switch. `at` is a multicast address.
template <ReduceOp Op, class T>
struct MulticastReduced {
  static_assert(detail::LoadReduce<Op, T>::exists, "a switch cannot combine this: see multimem.def");

  const char* at = nullptr;

  static constexpr bool waits = false;
  static constexpr uint32_t at_once = 4;

  CHORALE_FN bool may_take_several() const { return true; }
  CHORALE_FN bool whole(uint64_t) const { return true; }

  template <bool Whole, uint32_t N>
  CHORALE_FN Stop read(const Group&, const Turn& turn, Unit (&to)[N]) const {
    const auto load = [&](uint32_t index) {
      return detail::LoadReduce<Op, T>::of(at + (turn.unit + index * turn.stride) * unit_bytes);
    };
    // Usually no branch is between the loads, as in Mem::gather().
    if (turn.n == N) {
#pragma unroll
      for (uint32_t index = 0; index < N; ++index) to[index] = load(index);
    } else {
#pragma unroll
      for (uint32_t index = 0; index < N; ++index) {
        to[index] = Unit{};
        if (index < turn.n) to[index] = load(index);
      }
    }
    return Stop::none;
  }
};

/// Is the sink that writes to the memory of all members. `at` is a multicast address.
struct MulticastStore {
  char* at = nullptr;

  CHORALE_FN bool whole(uint64_t) const { return true; }

  template <bool Whole, uint32_t N>
  CHORALE_FN void write(const Turn& turn, const Unit (&from)[N]) const {
#pragma unroll
    for (uint32_t index = 0; index < N; ++index) {
      if (index < turn.n)
        detail::store_multicast(at + (turn.unit + index * turn.stride) * unit_bytes, from[index]);
    }
  }
};

}  // namespace chorale

#endif
