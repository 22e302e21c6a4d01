/// \file
/// These classes manage shared memory without a name, so that a process that dies leaves none behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "fork.hpp"

namespace chorale::system {

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

/// Throws the error in errno.
/// \throws RunError "cannot <what>: <errno's text>". If this process cannot open more files, the reason is
///         `resources` and the text names the remedy. Otherwise the reason is `other`
[[noreturn]] void throw_errno(const std::string& what);

/// Owns a shared, writable mapping. It is empty for 0 bytes.
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

/// Makes `bytes` > 0 bytes of zeroed memory in /dev/shm. All of it is allocated at once, so an access cannot
/// raise SIGBUS.
/// \throws RunError resources, which names the needed and the free bytes and the remedy
Descriptor create_shared(uint64_t bytes);

/// Gives memory of create_shared() a name in /dev/shm. Returns false if the name is taken.
bool publish(const Descriptor& memory, const std::string& name);

/// Opens the memory with that name. Returns an empty descriptor if there is none.
Descriptor open_published(const std::string& name);

/// Removes the name if it still belongs to `memory`.
void unpublish(const Descriptor& memory, const std::string& name);

/// Opens another process's descriptor as a descriptor of this process.
/// \throws RunError as throw_errno()
Descriptor open_of_peer(int pid, int fd);

/// Describes memory of this process so that another process can find and identify it.
struct SharedMemory {
  int pid = 0, fd = 0;
  uint64_t device = 0, inode = 0, bytes = 0;
};

SharedMemory offer_of(const Descriptor& memory);

/// Opens the memory that a peer offers.
/// \throws RunError as open_of_peer(); mismatch if it finds another file
Descriptor open_offered(const SharedMemory& offer);

uint64_t size_of(const Descriptor& memory);

}  // namespace chorale::system
