/// \file
/// Shared memory has no name here, so that a process that dies leaves none behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "fork.hpp"

namespace chorale::world {

/// Owns a file descriptor.
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

/// Owns a mapping that is shared and writable. It is empty for 0 bytes.
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

/// Makes `bytes` > 0 of zeros in /dev/shm. All of them are allocated, so touching them cannot raise SIGBUS.
/// \throws RunError resources with the bytes needed and free, and the remedy
Descriptor create_shared(uint64_t bytes);

/// Gives memory of create_shared() a name in /dev/shm. Returns false if the name is taken.
bool publish(const Descriptor& memory, const std::string& name);

/// Opens the memory of that name. Returns an empty descriptor if there is none.
Descriptor open_published(const std::string& name);

/// Takes the name away if it is still that of `memory`.
void unpublish(const Descriptor& memory, const std::string& name);

/// Opens another process's descriptor as one of ours.
/// \throws RunError as throw_errno()
Descriptor open_of_peer(int pid, int fd);

/// Says how another process finds memory of this one, and recognises it.
struct SharedMemory {
  int pid = 0, fd = 0;
  uint64_t device = 0, inode = 0, bytes = 0;
};

SharedMemory offer_of(const Descriptor& memory);

/// Opens the memory that a peer offers.
/// \throws RunError as open_of_peer(); mismatch if another file is there
Descriptor open_offered(const SharedMemory& offer);

uint64_t size_of(const Descriptor& memory);

}  // namespace chorale::world
