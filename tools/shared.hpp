/// \file
/// Makes memory that a process shares with the processes that it starts.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <type_traits>

#include "tools/command.hpp"

namespace chorale::tools {

/// Holds an array, zeroed at first, that processes started later share with this one.
template <class T>
class Shared {
  static_assert(std::is_trivially_destructible_v<T>, "nobody destroys what processes share");

 public:
  explicit Shared(size_t count) : bytes_(count * sizeof(T) + 1) {
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw Failure(Exit::run_failed, "no memory to share between processes");
    items_ = static_cast<T*>(memory);
  }
  ~Shared() { ::munmap(items_, bytes_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T& operator[](size_t at) const { return items_[at]; }

 private:
  T* items_;
  size_t bytes_;
};

}  // namespace chorale::tools
