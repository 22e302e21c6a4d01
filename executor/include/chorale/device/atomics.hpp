#pragma once
// These memory accesses are ordered or atomic across the whole machine: all GPUs, the host, and peers whose
// memory is mapped. On CUDA each function is one PTX instruction at system scope on global memory; on the CPU
// it is one __atomic builtin. T is a naturally aligned unsigned integer of 32 or 64 bits. The only other
// instructions that access memory with an order are in packet.hpp, lines.hpp and multicast.hpp. Those are
// all relaxed.

#include <cstdint>
#include <type_traits>

#include "chorale/device/macros.hpp"

namespace chorale {

namespace detail {
template <class T>
inline constexpr bool is_atomic_word = std::is_same_v<T, uint32_t> || std::is_same_v<T, uint64_t>;
}  // namespace detail

#if defined(__CUDACC__)

#define CHORALE_PTX_LOAD(name, order) \
  template <class T> \
  CHORALE_FN T name(const T* from) { \
    static_assert(detail::is_atomic_word<T>); \
    T value; \
    if constexpr (sizeof(T) == 4) { \
      asm volatile("ld." order ".sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory"); \
    } else { \
      asm volatile("ld." order ".sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory"); \
    } \
    return value; \
  }
#define CHORALE_PTX_STORE(name, order) \
  template <class T> \
  CHORALE_FN void name(T* to, T value) { \
    static_assert(detail::is_atomic_word<T>); \
    if constexpr (sizeof(T) == 4) { \
      asm volatile("st." order ".sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory"); \
    } else { \
      asm volatile("st." order ".sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory"); \
    } \
  }
#define CHORALE_PTX_ADD(name, order) \
  template <class T> \
  CHORALE_FN T name(T* at, T addend) { \
    static_assert(detail::is_atomic_word<T>); \
    T old; \
    if constexpr (sizeof(T) == 4) { \
      asm volatile("atom.add." order ".sys.global.u32 %0, [%1], %2;" \
                   : "=r"(old) \
                   : "l"(at), "r"(addend) \
                   : "memory"); \
    } else { \
      asm volatile("atom.add." order ".sys.global.u64 %0, [%1], %2;" \
                   : "=l"(old) \
                   : "l"(at), "l"(addend) \
                   : "memory"); \
    } \
    return old; \
  }

#define CHORALE_PTX_POST(name, order) \
  template <class T> \
  CHORALE_FN void name(T* at, T addend) { \
    static_assert(detail::is_atomic_word<T>); \
    if constexpr (sizeof(T) == 4) { \
      asm volatile("red.add." order ".sys.global.u32 [%0], %1;" ::"l"(at), "r"(addend) : "memory"); \
    } else { \
      asm volatile("red.add." order ".sys.global.u64 [%0], %1;" ::"l"(at), "l"(addend) : "memory"); \
    } \
  }

CHORALE_PTX_LOAD(load_relaxed, "relaxed")
CHORALE_PTX_LOAD(load_acquire, "acquire")
CHORALE_PTX_STORE(store_relaxed, "relaxed")
CHORALE_PTX_STORE(store_release, "release")
/// Add `addend` to the word and return the old value.
CHORALE_PTX_ADD(add_relaxed, "relaxed")
CHORALE_PTX_ADD(add_release, "release")
CHORALE_PTX_ADD(add_acq_rel, "acq_rel")
/// Add `addend` to the word and return nothing. A thread does not wait for the old value, so a post costs no
/// round trip.
CHORALE_PTX_POST(post_relaxed, "relaxed")
CHORALE_PTX_POST(post_release, "release")

#undef CHORALE_PTX_LOAD
#undef CHORALE_PTX_STORE
#undef CHORALE_PTX_ADD
#undef CHORALE_PTX_POST

/// Replaces `expected` by `desired`, with acquire order, and returns whether it did. Never fails spuriously.
template <class T>
CHORALE_FN bool compare_exchange_acquire(T* at, T expected, T desired) {
  static_assert(detail::is_atomic_word<T>);
  T seen;
  if constexpr (sizeof(T) == 4) {
    asm volatile("atom.cas.acquire.sys.global.b32 %0, [%1], %2, %3;"
                 : "=r"(seen)
                 : "l"(at), "r"(expected), "r"(desired)
                 : "memory");
  } else {
    asm volatile("atom.cas.acquire.sys.global.b64 %0, [%1], %2, %3;"
                 : "=l"(seen)
                 : "l"(at), "l"(expected), "l"(desired)
                 : "memory");
  }
  return seen == expected;
}

/// Orders this thread's earlier accesses before its later ones, for every observer in the machine.
CHORALE_FN void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

#else

template <class T>
CHORALE_FN T load_relaxed(const T* from) {
  static_assert(detail::is_atomic_word<T>);
  return __atomic_load_n(from, __ATOMIC_RELAXED);
}

template <class T>
CHORALE_FN T load_acquire(const T* from) {
  static_assert(detail::is_atomic_word<T>);
  return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

template <class T>
CHORALE_FN void store_relaxed(T* to, T value) {
  static_assert(detail::is_atomic_word<T>);
  __atomic_store_n(to, value, __ATOMIC_RELAXED);
}

template <class T>
CHORALE_FN void store_release(T* to, T value) {
  static_assert(detail::is_atomic_word<T>);
  __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

/// Add `addend` to the word and return the old value.
template <class T>
CHORALE_FN T add_relaxed(T* at, T addend) {
  static_assert(detail::is_atomic_word<T>);
  return __atomic_fetch_add(at, addend, __ATOMIC_RELAXED);
}

template <class T>
CHORALE_FN T add_release(T* at, T addend) {
  static_assert(detail::is_atomic_word<T>);
  return __atomic_fetch_add(at, addend, __ATOMIC_RELEASE);
}

template <class T>
CHORALE_FN T add_acq_rel(T* at, T addend) {
  static_assert(detail::is_atomic_word<T>);
  return __atomic_fetch_add(at, addend, __ATOMIC_ACQ_REL);
}

/// Add `addend` to the word and return nothing.
template <class T>
CHORALE_FN void post_relaxed(T* at, T addend) {
  add_relaxed(at, addend);
}

template <class T>
CHORALE_FN void post_release(T* at, T addend) {
  add_release(at, addend);
}

/// Replaces `expected` by `desired`, with acquire order, and returns whether it did. Never fails spuriously.
template <class T>
CHORALE_FN bool compare_exchange_acquire(T* at, T expected, T desired) {
  static_assert(detail::is_atomic_word<T>);
  return __atomic_compare_exchange_n(at, &expected, desired, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Wtsan"  // the sanitizer does not model fences; nothing that it checks relies on one
#endif
/// Orders this thread's earlier accesses before its later ones, for every observer in the machine.
CHORALE_FN void fence_system() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#endif

}  // namespace chorale
