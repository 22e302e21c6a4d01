#include "host_words.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>

#include "error.hpp"
#include "executor/system/host_pages.hpp"

namespace chorale::cuda {
namespace {

/// Records the registrations of this process by their pages.
class Registry {
 public:
  void add(uint64_t first, uint64_t last) {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[{first, last}];
    if (entry.users == 0) {
      const cudaError_t result = cudaHostRegister(reinterpret_cast<void*>(first), last - first,
                                                  cudaHostRegisterMapped | cudaHostRegisterPortable);
      if (result == cudaErrorHostMemoryAlreadyRegistered) {
        cudaGetLastError();
      } else if (result != cudaSuccess) {
        entries_.erase({first, last});
        check(result, fmt::format("cudaHostRegister of {} bytes", last - first));
      }
      entry.ours = result == cudaSuccess;
    }
    ++entry.users;
  }

  void remove(uint64_t first, uint64_t last) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find({first, last});
    if (--found->second.users > 0) return;
    if (found->second.ours) {
      check_quietly(cudaHostUnregister(reinterpret_cast<void*>(first)), "cudaHostUnregister");
    }
    entries_.erase(found);
  }

 private:
  struct Entry {
    int users = 0;
    bool ours = false;
  };
  std::mutex mutex_;
  std::map<std::pair<uint64_t, uint64_t>, Entry> entries_;
};

Registry& registry() {
  static Registry& all = *new Registry;  // outlives every static HostMapping
  return all;
}

}  // namespace

HostMapping::HostMapping(void* memory, uint64_t bytes) {
  const uint64_t at = reinterpret_cast<uint64_t>(memory), page = page_bytes();
  const uint64_t first = at / page * page, last = (at + bytes + page - 1) / page * page;
  registry().add(first, last);
  first_ = first;
  last_ = last;
}

HostMapping::~HostMapping() {
  if (last_ != first_) registry().remove(first_, last_);
}

void* HostMapping::device_pointer(void* host) const {
  void* device = nullptr;
  check(cudaHostGetDevicePointer(&device, host, 0), "cudaHostGetDevicePointer of registered memory");
  return device;
}

HostBytes::HostBytes(uint64_t bytes) {
  if (bytes == 0) return;
  check(cudaHostAlloc(&host_, bytes, cudaHostAllocMapped | cudaHostAllocPortable),
        fmt::format("cudaHostAlloc of {} bytes", bytes));
  std::memset(host_, 0, bytes);
  const cudaError_t result = cudaHostGetDevicePointer(&device_, host_, 0);
  if (result == cudaSuccess) return;
  check_quietly(cudaFreeHost(host_), "cudaFreeHost");
  check(result, "cudaHostGetDevicePointer of pinned memory");
}

HostBytes::~HostBytes() {
  if (host_) check_quietly(cudaFreeHost(host_), "cudaFreeHost");
}

}  // namespace chorale::cuda
