/// \file
/// The ranks of a run, as threads or processes of this machine: started, watched and cleaned up.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>

#include "chorale/config.hpp"
#include "chorale/world.hpp"
#include "tools/command.hpp"

namespace chorale::tools {

/// An array, zeroed at first, that processes started later share with this one.
template <class T>
class Shared {
  static_assert(std::is_trivially_destructible_v<T>, "nobody destroys what processes share");

 public:
  explicit Shared(size_t count) : bytes_(count * sizeof(T) + 1) {
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw Failure(Exit::run_failed, "no memory for the reports of the ranks");
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

struct Launch {
  uint32_t ranks = 1;
  bool processes = false;                      ///< a process a rank; else threads of this one
  std::function<std::string()> progress = {};  ///< what is done so far, for processes
  /// Called all the while, by one thread, and once at the end; does not throw.
  std::function<void()> watch = {};
};

/// Runs `body` once a rank and waits for all of them.
/// \return why the run ended early: the cause among the ranks' errors, not an echo; "" if it did not
std::string run_ranks(const Launch&, const Config&, const std::function<void(World&)>& body);

}  // namespace chorale::tools
