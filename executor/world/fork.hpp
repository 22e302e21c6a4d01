/// \file
/// Forks of this process: they are given all of its memory and files, and none of its threads.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace chorale::world {

/// The process in which it was made.
class Origin {
 public:
  Origin();
  /// Whether this process is a fork of that one.
  bool forked() const;

 private:
  uint32_t forks_;
};

/// A descriptor that forks made while this lives do not get: a connection is to end with the process that it
/// is of, and not with the last of its forks. In a fork it is closed, whoever thinks that he owns it there.
/// Programs are kept from it by O_CLOEXEC.
class ClosedInForks {
 public:
  ClosedInForks() = default;
  explicit ClosedInForks(int descriptor);
  ClosedInForks(ClosedInForks&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ClosedInForks& operator=(ClosedInForks&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  /// Before the descriptor is closed, or its number might be another's by then.
  ~ClosedInForks();

 private:
  int descriptor_ = -1;
};

/// For a fork, where what has threads cannot be destroyed, and what speaks with peers must not be.
void keep_for_ever(std::shared_ptr<const void> what);

/// The same of `state`, which has an `origin`, if this process is a fork of that.
template <class State>
void keep_if_forked(std::unique_ptr<State>& state) {
  if (state && state->origin.forked()) keep_for_ever(std::shared_ptr<State>(std::move(state)));
}

/// Moves `other` to `state`, whose old value ends as in the destructor of what it is of.
template <class State>
void replace(std::unique_ptr<State>& state, std::unique_ptr<State>& other) {
  if (&state != &other) keep_if_forked(state);
  state = std::move(other);
}

}  // namespace chorale::world
