/// \file
/// Shared memory that has no name, so that no death of a process leaves any behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "fork.hpp"

namespace chorale::world {

/// A file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), closed_in_forks_(std::move(other.closed_in_forks_)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();

  /// See ClosedInForks.
  void close_in_forks() { closed_in_forks_ = ClosedInForks(fd_); }

 private:
  int fd_;
  ClosedInForks closed_in_forks_;
};

/// \throws RunError "cannot <what>: <errno's text>". Its reason is `resources`, and it names the remedy, if
///         no more files may be open; else its reason is `other`
[[noreturn]] void throw_errno(const std::string& what);

/// A mapping, shared and writable. Empty for 0 bytes.
class Mapping {
 public:
  Mapping() = default;
  /// \throws RunError resources
  Mapping(const Descriptor& from, uint64_t bytes);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

/// `bytes` > 0 of zeros in /dev/shm, all of them there: touching them cannot raise SIGBUS.
/// \throws RunError resources with the bytes needed and free, and the remedy
Descriptor create_shared(uint64_t bytes);

/// Gives memory of create_shared() a name in /dev/shm; false if there is one already.
bool publish(const Descriptor& memory, const std::string& name);

/// The memory of that name; empty if there is none.
Descriptor open_published(const std::string& name);

/// Takes the name away if it is still that of `memory`.
void unpublish(const Descriptor& memory, const std::string& name);

/// Another process's descriptor, as one of ours.
/// \throws RunError as throw_errno()
Descriptor open_of_peer(int pid, int fd);

/// How another process finds memory of this one, and knows it again.
struct SharedMemory {
  int pid = 0, fd = 0;
  uint64_t device = 0, inode = 0, bytes = 0;
};

SharedMemory offer_of(const Descriptor& memory);

/// \throws RunError as open_of_peer(); mismatch if what is there is another file
Descriptor open_offered(const SharedMemory& offer);

uint64_t size_of(const Descriptor& memory);

}  // namespace chorale::world
