#include "fork.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace chorale::system {
namespace {

struct Forks {
  std::mutex mutex;  // held during a fork, so that the fork gets a consistent list
  std::vector<int> closed;
  uint32_t before = 0;  // the number of forks between the first process and this one
};

/// Returns the list. It is never destroyed, because other parts of the process may still fork at exit.
Forks& forks() {
  static Forks& all = *new Forks;
  static const int watched = pthread_atfork([] { all.mutex.lock(); }, [] { all.mutex.unlock(); },
                                            [] {
                                              // This must not allocate, because another thread may have held
                                              // the lock of malloc().
                                              for (const int descriptor : all.closed) close(descriptor);
                                              all.closed.clear();
                                              ++all.before;
                                              all.mutex.unlock();
                                            });
  static_cast<void>(watched);
  return all;
}

}  // namespace

Origin::Origin() : forks_(forks().before) {}
bool Origin::forked() const { return forks().before != forks_; }

ClosedInForks::ClosedInForks(int descriptor) : descriptor_(descriptor) {
  const std::lock_guard lock(forks().mutex);
  forks().closed.push_back(descriptor);
}

ClosedInForks::~ClosedInForks() {
  if (descriptor_ < 0) return;
  const std::lock_guard lock(forks().mutex);
  std::vector<int>& closed = forks().closed;
  // In a fork the list no longer has it.
  const auto at = std::find(closed.begin(), closed.end(), descriptor_);
  if (at != closed.end()) closed.erase(at);
}

void keep_for_ever(std::shared_ptr<const void> what) {
  static std::mutex& mutex = *new std::mutex;
  static auto& kept = *new std::vector<std::shared_ptr<const void>>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(what));
}

}  // namespace chorale::system
