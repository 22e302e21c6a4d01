/// \file
/// A CUDA without GPUs, for the tests of what surrounds kernels: device memory is shared memory of the host,
/// which other processes really map. As unkind as CUDA may be: numbers of handles and addresses are given
/// again at once, and an address range keeps its buffer id whatever is mapped in it. A wrong release ends the
/// process.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace chorale::test::fake {

enum class Kind { malloced, pooled, managed, host, mapped };

/// Memory that there is an address for.
struct Range {
  uint64_t bytes = 0;
  Kind kind = Kind::malloced;
  uint64_t buffer_id = 0;
  int device = 0;
  int file = -1;            // unless mapped
  uint64_t handle = 0;      // if mapped
  bool accessible = false;  // given access to, if mapped
};

/// What all processes know of a multicast object, behind its memory in its file.
struct Team {
  uint64_t magic = 0;
  uint32_t devices = 0;                      ///< so many belong to it
  std::atomic<uint64_t> added{0}, bound{0};  ///< a bit each
};

/// What cuMemCreate(), cuMulticastCreate() or an import made.
struct Handle {
  int file = -1;
  uint64_t bytes = 0;
  unsigned types = 0;
  int references = 0;
  bool created = false;
  int device = 0;
  Team* team = nullptr;                        ///< of a multicast object
  uint64_t bound_bytes = 0, bound_memory = 0;  ///< by this process: how many of what
};

struct Reservation {
  uint64_t bytes = 0, buffer_id = 0;
};

/// An allocation of another process.
struct Opened {
  void* data = nullptr;
  uint64_t bytes = 0;
  int references = 0;
  int process = 0;
  uint64_t address = 0;  ///< in that process
};

struct State {
  std::recursive_mutex mutex;
  std::map<uint64_t, Range> ranges;  // by address, as the next two
  std::map<uint64_t, Reservation> reservations;
  std::map<uint64_t, uint64_t> registered;  // bytes
  std::map<uint64_t, Handle> handles;       // by number
  std::map<std::string, Opened> opened;     // by IPC handle
  uint64_t next_buffer_id = 1;
  uint64_t used_bytes = 0;
  std::atomic<bool> copies_fail = false;
  std::atomic<bool> copies_are_slow = false;  ///< so that what does not wait for one comes before it
  /// Words that streams write wait until no kernel runs, as where both stand in one queue to the GPU. Kernels
  /// of tests count themselves.
  std::atomic<bool> one_queue = false;
  std::atomic<int> kernels = 0;
  bool no_multicast = false;
  bool adding_fails = false;               ///< of a device to a multicast object
  std::atomic<int> multicast_objects = 0;  ///< that this process has made
  bool mallocs_fail = false;               ///< what cuMemCreate() makes is had all the same

  /// The range around `address`, or the end.
  std::map<uint64_t, Range>::iterator around(uint64_t address);
};

State& state();
int current_device();

/// A file of `bytes`; -1 if there is no room.
int make_file(uint64_t bytes);
CUresult release(uint64_t handle);

/// cuMulticast..(): null for another name. The switch itself is not there: what is mapped is memory of
/// nobody.
void* find_multicast(const std::string& name);
constexpr uint64_t multicast_unit = 4 << 20;  ///< larger than that of allocations

/// The lowest number that is free.
uint64_t add(const Handle& handle);
/// What the file of a multicast object says; null for another one.
Team* team_of(int file, uint64_t bytes);

/// What cudaGetLastError() finds next on this thread: calls here leave nothing themselves.
cudaError_t& last_error();

/// The test shall see it.
[[noreturn]] void die(const char* why);

}  // namespace chorale::test::fake
