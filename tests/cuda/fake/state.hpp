/// \file
/// Provides a CUDA without GPUs, for tests of the code around kernels. Device memory is shared memory of the
/// host, which other processes really map. It behaves as badly as CUDA may: it reuses numbers of handles and
/// addresses at once, and an address range keeps its buffer id whatever is mapped in it. A wrong release ends
/// the process.
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

/// Describes memory that has an address.
struct Range {
  uint64_t bytes = 0;
  Kind kind = Kind::malloced;
  uint64_t buffer_id = 0;
  int device = 0;
  int file = -1;            // unless mapped
  uint64_t handle = 0;      // if mapped
  bool accessible = false;  // if mapped: access was granted
};

/// Holds the state of a multicast object, which all processes share. It follows the object's memory in its
/// file.
struct Team {
  uint64_t magic = 0;
  uint32_t devices = 0;                      ///< the number of its devices
  std::atomic<uint64_t> added{0}, bound{0};  ///< one bit per device
};

/// Describes a handle from cuMemCreate(), cuMulticastCreate() or an import.
struct Handle {
  int file = -1;
  uint64_t bytes = 0;
  unsigned types = 0;
  int references = 0;
  bool created = false;
  int device = 0;
  Team* team = nullptr;                        ///< only of a multicast object
  uint64_t bound_bytes = 0, bound_memory = 0;  ///< the bytes and the handle that this process bound
};

struct Reservation {
  uint64_t bytes = 0, buffer_id = 0;
};

/// Describes an allocation of another process that this one has opened.
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
  std::atomic<bool> copies_are_slow = false;  ///< so that work that does not wait for a copy runs before it
  /// Words that streams write wait until no kernel runs, as if both were in one queue to the GPU. The tests'
  /// kernels count themselves.
  std::atomic<bool> one_queue = false;
  std::atomic<int> kernels = 0;
  bool no_multicast = false;
  bool adding_fails = false;               ///< adding a device to a multicast object fails
  std::atomic<int> multicast_objects = 0;  ///< the number that this process has made
  bool mallocs_fail = false;               ///< cudaMalloc() fails, and cuMemCreate() does not

  /// Returns the range around `address`, or the end.
  std::map<uint64_t, Range>::iterator around(uint64_t address);
};

State& state();
int current_device();

/// Makes a file of `bytes`. Returns -1 if there is no memory.
int make_file(uint64_t bytes);
CUresult release(uint64_t handle);

/// Returns the function of cuMulticast..() by its name; null for another name. There is no switch: mappings
/// are memory that no device uses.
void* find_multicast(const std::string& name);
constexpr uint64_t multicast_unit = 4 << 20;  ///< larger than that of allocations

/// Adds a handle under the lowest number that is free, and returns that number.
uint64_t add(const Handle& handle);
/// Returns the shared state in the file of a multicast object; null for another file.
Team* team_of(int file, uint64_t bytes);

/// Returns the error that cudaGetLastError() finds next on this thread. Calls of the fake set none
/// themselves.
cudaError_t& last_error();

/// Ends the process, so that the test notices.
[[noreturn]] void die(const char* why);

}  // namespace chorale::test::fake
