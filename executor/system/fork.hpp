/// \file
/// A fork of this process gets all of its memory and files, and none of its threads.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace chorale::world {

/// Remembers the process in which it was made.
class Origin {
 public:
  Origin();
  /// Returns whether this process is a fork of that one.
  bool forked() const;

 private:
  uint32_t forks_;
};

/// Keeps a descriptor from forks that are made while this lives. A connection has to end with the process
/// that owns it, and not with the last of its forks. In a fork the descriptor is closed, even if an object
/// there still owns it. O_CLOEXEC keeps it from programs.
class ClosedInForks {
 public:
  ClosedInForks() = default;
  explicit ClosedInForks(int descriptor);
  ClosedInForks(ClosedInForks&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ClosedInForks& operator=(ClosedInForks&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  /// Ends this. It must run before the descriptor is closed, or its number might be another's by then.
  ~ClosedInForks();

 private:
  int descriptor_ = -1;
};

/// Keeps an object from being destroyed. In a fork, an object with threads cannot be destroyed, and one that
/// speaks with peers must not be.
void keep_for_ever(std::shared_ptr<const void> what);

/// Keeps `state` for ever if this process is a fork of the one in which its `origin` was made.
template <class State>
void keep_if_forked(std::unique_ptr<State>& state) {
  if (state && state->origin.forked()) keep_for_ever(std::shared_ptr<State>(std::move(state)));
}

/// Moves `other` to `state`. The old value ends as in its owner's destructor.
template <class State>
void replace(std::unique_ptr<State>& state, std::unique_ptr<State>& other) {
  if (&state != &other) keep_if_forked(state);
  state = std::move(other);
}

}  // namespace chorale::world
