/// \file
/// Runs ranks of a communicator of libnccl.so.2, as threads or as processes, and makes values of all types.
/// The backend is the CPU or, with CHORALE_ON_FAKE_CUDA, the CUDA of tests/cuda/fake, with a GPU per rank.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#if defined(CHORALE_ON_FAKE_CUDA)
#include <cuda_runtime_api.h>
#endif

#include "tests/forked.hpp"
#include "tests/nccl/table.hpp"

namespace nccl_tests {

#if defined(CHORALE_ON_FAKE_CUDA)
constexpr bool on_gpus = true;
/// Makes this thread use the GPU of a rank.
inline void use_gpu(int rank) { cudaSetDevice(rank); }
/// Waits until the GPU of this thread has done all enqueued work.
inline void settle() { cudaDeviceSynchronize(); }
/// Waits for the first `gpus` GPUs.
inline void settle_all(int gpus) {
  int before = 0;
  cudaGetDevice(&before);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    use_gpu(gpu);
    settle();
  }
  use_gpu(before);
}
/// Returns the bytes of GPU memory that this process has allocated.
inline uint64_t used_memory() {
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  return total - free;
}
/// Allocates memory of this thread's GPU, which the host can use too because the CUDA is a fake.
template <class T>
struct Allocator {
  using value_type = T;
  T* allocate(size_t count) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, count * sizeof(T)), cudaSuccess);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) { cudaFree(memory); }
  bool operator==(const Allocator&) const { return true; }
};
#else
constexpr bool on_gpus = false;
inline void use_gpu(int) {}
inline void settle() {}
inline void settle_all(int) {}
inline uint64_t used_memory() { return 0; }
template <class T>
using Allocator = std::allocator<T>;
#endif
inline const int backend_is_set =
    setenv("CHORALE_BACKEND", on_gpus ? "cuda" : "cpu", 1) + setenv("FAKE_GPUS", "8", 1);

/// Waits until threads of the library have freed so much GPU memory that this process uses at most `bytes`.
/// \returns the bytes in use, which are more after a minute
inline uint64_t used_memory_at_most(uint64_t bytes) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (used_memory() > bytes && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return used_memory();
}

inline std::string sentence() { return ncclGetLastError(nullptr); }

/// Returns the communicator of a rank.
inline ncclComm_t joined(const ncclUniqueId& id, int ranks, int rank) {
  use_gpu(rank);
  ncclComm_t comm{};
  EXPECT_EQ(ncclCommInitRank(&comm, ranks, id, rank), ncclSuccess) << sentence();
  return comm;
}

inline ncclUniqueId new_id() {
  ncclUniqueId id{};
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess) << sentence();
  return id;
}

using Body = std::function<void(ncclComm_t comm, int rank)>;

/// Runs `body` on each rank, in a thread each, and destroys the communicators.
inline void in_threads(int ranks, const Body& body) {
  const ncclUniqueId id = new_id();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const ncclComm_t comm = joined(id, ranks, rank);
      if (!comm) return;
      body(comm, rank);
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << sentence();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Counts the ranks of forked_with_id() that have ended.
inline std::atomic<int>* ended_ranks = nullptr;

/// Kills this process, which is a rank of forked_with_id().
[[noreturn]] inline void die() {
  ++*ended_ranks;
  kill(getpid(), SIGKILL);
  std::abort();
}

/// Runs `body` in a process for each rank, with the id of a communicator that is still to be made. Another
/// process makes the id, because that starts a thread, which must not run while a process forks.
/// \returns by rank how the processes ended, as forked()
inline std::vector<int> forked_with_id(int ranks,
                                       const std::function<int(const ncclUniqueId& id, int rank)>& body) {
  struct Shared {
    ncclUniqueId id;
    std::atomic<int> ready, ended;
  };
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Shared& shared = *new (memory) Shared{};
  const auto wait_for = [](const std::atomic<int>& number, int least) {
    for (int turn = 0; number < least && turn < 60000; ++turn) usleep(1000);
  };
  std::vector<int> ends = chorale::test::forked(ranks + 1, [&](int rank) {
    if (rank == ranks) {
      shared.id = new_id();
      shared.ready = 1;
      wait_for(shared.ended, ranks);
      return 0;
    }
    wait_for(shared.ready, 1);
    ended_ranks = &shared.ended;
    struct AtEnd {
      std::atomic<int>& ended;
      ~AtEnd() { ++ended; }
    } const at_end{shared.ended};
    return body(shared.id, rank);
  });
  ends.pop_back();
  munmap(memory, sizeof(Shared));
  return ends;
}

/// Does the same as in_threads() with a process for each rank.
inline void in_processes(int ranks, const Body& body) {
  const std::vector<int> ends = forked_with_id(ranks, [&](const ncclUniqueId& id, int rank) {
    const ncclComm_t comm = joined(id, ranks, rank);
    if (comm) body(comm, rank);
    if (comm) {
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << sentence();
    }
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(ends, std::vector<int>(size_t(ranks), 0));
}

/// Defines a test that runs on ranks in threads, and one that runs on ranks in processes. The body of both
/// follows, with its parameters: (ncclComm_t comm, int rank) { ... }. The thread sanitizer leaves out tests
/// with Processes in their names.
#define CHORALE_NCCL_TEST(suite, name, ranks) \
  void suite##_##name(ncclComm_t comm, int rank); \
  TEST(suite, name) { nccl_tests::in_threads(ranks, suite##_##name); } \
  TEST(suite##Processes, name) { nccl_tests::in_processes(ranks, suite##_##name); } \
  void suite##_##name

/// Describes a floating-point format with `exponent` and `mantissa` bits.
struct Format {
  int exponent, mantissa;
};

/// Returns the bits of a small number in a format. Numbers from 0 to 15 are exact in all formats that the
/// tests use them with.
inline uint64_t encoded(double value, Format format) {
  if (value == 0) return 0;
  int power = 0;
  const double fraction =
      std::frexp(std::abs(value), &power) * 2 - 1;  // value = (1 + fraction) * 2^(power - 1)
  const int bias = (1 << (format.exponent - 1)) - 1;
  const auto bits =
      uint64_t(power - 1 + bias) << format.mantissa | uint64_t(std::ldexp(fraction, format.mantissa));
  return bits | (value < 0 ? uint64_t(1) << (format.exponent + format.mantissa) : 0);
}

/// Returns the bits of a value of a type.
inline uint64_t bits_of(double value, ncclDataType_t type) {
  switch (int(type)) {
    case ncclFloat16:
      return encoded(value, {5, 10});
    case ncclBfloat16:
      return encoded(value, {8, 7});
    case ncclFloat32:
      return encoded(value, {8, 23});
    case ncclFloat64:
      return encoded(value, {11, 52});
    case ncclFloat8e4m3:
      return encoded(value, {4, 3});
    case ncclFloat8e5m2:
      return encoded(value, {5, 2});
    default:
      return uint64_t(int64_t(value));
  }
}

inline size_t size_of(ncclDataType_t type) {
  constexpr size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return sizes[type];
}

/// Gives the number of places after which the numbers of a rank repeat.
constexpr size_t period = 3;

/// Returns the number that rank `rank` has at a place of its input: small, so that sums and products of a few
/// ranks are exact in all types.
inline double number(int rank, size_t at) { return double((at + size_t(rank)) % period); }

/// Holds elements of a type. Whoever looks at them, or destroys them, waits for the calls that use them.
class Elements {
 public:
  Elements(ncclDataType_t type, size_t count)
      : type_(type), count_(count), units_((bytes() + sizeof(Unit) - 1) / sizeof(Unit)) {}
  /// Sets each element to value(its place).
  template <class Value>
  Elements(ncclDataType_t type, size_t count, const Value& value) : Elements(type, count) {
    for (size_t at = 0; at < count; ++at) set(at, value(at));
  }
  /// Does the same for values that repeat after `period` places. It sets a few elements and copies them,
  /// because the sanitizers make a large array slow to fill one by one.
  template <class Value>
  static Elements repeating(ncclDataType_t type, size_t count, const Value& value) {
    Elements made(type, count);
    size_t filled = std::min(count, period);
    for (size_t at = 0; at < filled; ++at) made.set(at, value(at));
    for (; filled < count; filled = std::min(count, 2 * filled))
      made.copy(made, 0, filled, std::min(filled, count - filled));
    return made;
  }
  ~Elements() { settle(); }
  Elements(const Elements& other) : type_(other.type_), count_(other.count_) {
    settle();
    units_ = other.units_;
  }
  /// Keeps the memory if the buffers are equally long, because a graph may use it.
  Elements& operator=(const Elements& other) {
    settle();
    type_ = other.type_;
    count_ = other.count_;
    units_ = other.units_;
    return *this;
  }

  void set(size_t at, double value) {
    const uint64_t bits = bits_of(value, type_);
    std::memcpy(place(at), &bits, size_of(type_));
  }
  /// Copies `count` elements of another buffer, from place `from` on, to place `to` of this one.
  void copy(const Elements& other, size_t from, size_t to, size_t count) {
    settle();
    if (count != 0) std::memcpy(place(to), other.place(from), count * size_of(type_));
  }
  char* data(size_t at = 0) {
    settle();
    return place(at);
  }
  size_t count() const { return count_; }
  bool operator==(const Elements& other) const {
    settle();
    return type_ == other.type_ && count_ == other.count_ && units_ == other.units_;
  }

 private:
  /// A vector fills the memory of a GPU unit by unit, so units are larger there. In memory of the host they
  /// end with the last element, so that the address sanitizer sees an access behind it.
  using Unit = std::conditional_t<on_gpus, uint64_t, char>;
  size_t bytes() const { return count_ * size_of(type_); }
  char* place(size_t at) { return reinterpret_cast<char*>(units_.data()) + at * size_of(type_); }
  const char* place(size_t at) const {
    return reinterpret_cast<const char*>(units_.data()) + at * size_of(type_);
  }

  ncclDataType_t type_;
  size_t count_;
  std::vector<Unit, Allocator<Unit>> units_;
};

/// Holds numbers in memory of this thread's GPU. Call settle() before you read what a call has written.
using Ints = std::vector<int, Allocator<int>>;

/// Holds a number in memory of this thread's GPU.
class Number {
 public:
  explicit Number(int value) : memory_(ncclInt32, 1) { set(value); }
  int* at() { return reinterpret_cast<int*>(memory_.data()); }
  void set(int value) { *at() = value; }
  int get() { return *at(); }

 private:
  Elements memory_;
};

/// Sums one number per rank.
inline void expect_sum(ncclComm_t comm, int value, int expected) {
  Number in(value), out(-1);
  EXPECT_EQ(ncclAllReduce(in.at(), out.at(), 1, ncclInt32, ncclSum, comm, nullptr), ncclSuccess)
      << sentence();
  EXPECT_EQ(out.get(), expected);
}

/// Returns how a call has ended: its result or, if that says nothing, the state of the communicator after it.
inline ncclResult_t ended(ncclResult_t result, ncclComm_t comm) {
  if (result != ncclSuccess) return result;
  settle();
  EXPECT_EQ(ncclCommGetAsyncError(comm, &result), ncclSuccess);
  return result;
}

}  // namespace nccl_tests
