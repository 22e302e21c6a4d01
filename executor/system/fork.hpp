/// \file
/// These classes handle forks of this process. A fork gets all of the memory and files of this process, but
/// none of its threads.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace chorale::system {

/// Remembers the process in which it was made.
class Origin {
 public:
  Origin();
  /// Returns whether this process is a fork of the remembered one.
  bool forked() const;

 private:
  uint32_t forks_;
};

/// Closes a descriptor in every fork that is made while this object lives. A connection must end with the
/// process that owns it, and not with the last of its forks. The fork closes the descriptor even if an object
/// there still owns it. Programs that a fork executes do not get it because of O_CLOEXEC.
class ClosedInForks {
 public:
  ClosedInForks() = default;
  explicit ClosedInForks(int descriptor);
  ClosedInForks(ClosedInForks&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ClosedInForks& operator=(ClosedInForks&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  /// Unregisters the descriptor. Destroy this object before you close the descriptor, because its number may
  /// be reused at once.
  ~ClosedInForks();

 private:
  int descriptor_ = -1;
};

/// Keeps an object alive until the process ends. A fork cannot destroy an object with threads, and must not
/// destroy one that communicates with peers.
void keep_for_ever(std::shared_ptr<const void> what);

/// Keeps `state` alive until the process ends if this process is a fork of the process that made its
/// `origin`.
template <class State>
void keep_if_forked(std::unique_ptr<State>& state) {
  if (state && state->origin.forked()) keep_for_ever(std::shared_ptr<State>(std::move(state)));
}

/// Moves `other` to `state`. It destroys the old value as its owner's destructor would.
template <class State>
void replace(std::unique_ptr<State>& state, std::unique_ptr<State>& other) {
  if (&state != &other) keep_if_forked(state);
  state = std::move(other);
}

}  // namespace chorale::system
