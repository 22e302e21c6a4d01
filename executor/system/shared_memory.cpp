#include "shared_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "available_memory.hpp"
#include "chorale/error.hpp"
#include "chorale/write_error.hpp"

namespace chorale::system {
namespace {

constexpr const char* folder = "/dev/shm";

/// Throws the error of a /dev/shm that refuses memory for a reason other than its size. A larger one would
/// not help.
[[noreturn]] void throw_refused(int error) {
  throw RunError(
      RunError::Reason::resources,
      fmt::format("ranks as processes share memory in {}: {}; mount a tmpfs there that this user may "
                  "write to, or let ranks be threads",
                  folder, std::strerror(error)));
}

[[noreturn]] void throw_full(uint64_t bytes, const std::string& problem) {
  struct statvfs space {};
  uint64_t free_bytes = 0;
  if (statvfs(folder, &space) == 0) free_bytes = uint64_t(space.f_bavail) * space.f_frsize;
  throw RunError(RunError::Reason::resources,
                 fmt::format("{} bytes of shared memory needed, {} free in {}: {}; enlarge it (mount -o "
                             "remount,size=..., docker run --shm-size=... or --ipc=host), free it, or use "
                             "smaller buffers",
                             bytes, free_bytes, folder, problem));
}

[[noreturn]] void throw_not_allocated(uint64_t bytes, int error) {
  if (error != EFBIG) throw_full(bytes, std::strerror(error));
  // The limit is on file sizes, so a larger /dev/shm would not help.
  throw RunError(RunError::Reason::resources,
                 fmt::format("cannot make {} bytes of shared memory in {}: {}; or use smaller buffers", bytes,
                             folder, write_error(error)));
}

std::string path_of_own(const Descriptor& memory) { return fmt::format("/proc/self/fd/{}", memory.get()); }

Descriptor create_unnamed() {
#if defined(O_TMPFILE)
  // Memory made this way never has a name, so that even a kill at this point leaves none behind.
  Descriptor memory(open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (memory || (errno != EOPNOTSUPP && errno != EISDIR)) return memory;
#endif
  const std::string name =
      fmt::format("/chorale-unnamed-{}-{}", getpid(), reinterpret_cast<uintptr_t>(&errno));
  Descriptor named(shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (named) shm_unlink(name.c_str());
  return named;
}

/// Allocates the memory in pieces. A signal would undo the allocation of a piece, so it blocks signals during
/// each piece. Other ranks allocate at the same time, so it checks the available memory before each piece.
int allocate(const Descriptor& memory, uint64_t bytes) {
  constexpr uint64_t piece_bytes = uint64_t(16) << 20;
  sigset_t all, before;
  sigfillset(&all);
  int error = 0;
  for (uint64_t done = 0; done < bytes && error == 0; done += piece_bytes) {
    if (bytes > piece_bytes) require_memory(piece_bytes, fmt::format("shared memory of {} bytes", bytes));
    pthread_sigmask(SIG_SETMASK, &all, &before);
    do error = posix_fallocate(memory.get(), off_t(done), off_t(std::min(piece_bytes, bytes - done)));
    while (error == EINTR);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  return error;
}

bool same_file(const Descriptor& memory, const std::string& name) {
  struct stat mine {
  }, named{};
  return fstat(memory.get(), &mine) == 0 && stat(fmt::format("{}/{}", folder, name).c_str(), &named) == 0 &&
         mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

}  // namespace

void throw_errno(const std::string& what) {
  const int error = errno;
  const bool full = error == EMFILE || error == ENFILE || error == ETOOMANYREFS;
  throw RunError(full ? RunError::Reason::resources : RunError::Reason::other,
                 fmt::format("cannot {}: {}{}", what, std::strerror(error),
                             full ? "; allow more open files (ulimit -n)" : ""));
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(closed_in_forks_, other.closed_in_forks_);
  return *this;
}

Descriptor::~Descriptor() {
  closed_in_forks_ = {};
  if (fd_ >= 0) close(fd_);
}

int Descriptor::release() {
  closed_in_forks_ = {};
  return std::exchange(fd_, -1);
}

Mapping::Mapping(const Descriptor& from, uint64_t bytes) {
  if (bytes == 0) return;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, from.get(), 0);
  if (memory == MAP_FAILED) {
    throw RunError(RunError::Reason::resources,
                   fmt::format("cannot map {} bytes of shared memory: {}; raise the limit of the process's "
                               "address space (ulimit -v), or use smaller buffers",
                               bytes, std::strerror(errno)));
  }
  data_ = static_cast<std::byte*>(memory);
  bytes_ = bytes;
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (data_) munmap(data_, bytes_);
}

Descriptor create_shared(uint64_t bytes) {
  // Check first, because posix_fallocate() would fill all free space, and starve other users, before it
  // fails.
  struct statvfs space {};
  if (statvfs(folder, &space) == 0 && space.f_blocks > 0 && bytes / space.f_frsize > space.f_bavail) {
    throw_full(bytes, "too little space");
  }
  require_memory(bytes, "shared memory");
  Descriptor memory = create_unnamed();
  if (!memory && (errno == EMFILE || errno == ENFILE)) throw_errno("create shared memory");
  if (!memory && errno != ENOSPC && errno != ENOMEM) throw_refused(errno);
  if (!memory) throw_full(bytes, std::strerror(errno));
  const FileLimitAsError limited;
  if (const int error = allocate(memory, bytes)) throw_not_allocated(bytes, error);
  return memory;
}

bool publish(const Descriptor& memory, const std::string& name) {
  const std::string path = fmt::format("{}/{}", folder, name);
  if (linkat(AT_FDCWD, path_of_own(memory).c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0)
    return true;
  if (errno == EEXIST) return false;
  throw RunError(RunError::Reason::resources,
                 fmt::format("cannot create {}: {}", path, std::strerror(errno)));
}

Descriptor open_published(const std::string& name) {
  const std::string path = fmt::format("{}/{}", folder, name);
  Descriptor memory(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (memory || errno == ENOENT) return memory;
  if (errno == EMFILE || errno == ENFILE) throw_errno("open " + path);
  throw RunError(RunError::Reason::resources, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
}

void unpublish(const Descriptor& memory, const std::string& name) {
  // Two ranks may find the same leftover memory. The lock keeps one from removing the new memory that the
  // other has already published under this name.
  flock(memory.get(), LOCK_EX);
  if (same_file(memory, name)) unlink(fmt::format("{}/{}", folder, name).c_str());
  flock(memory.get(), LOCK_UN);
}

Descriptor open_of_peer(int pid, int fd) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  Descriptor memory(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (memory) return memory;
  if (errno == EMFILE || errno == ENFILE) throw_errno("open a peer's shared memory at " + path);
  throw RunError(
      RunError::Reason::other,
      fmt::format("cannot open a peer's shared memory at {}: {}; the ranks must be processes of one "
                  "user that see each other in /proc",
                  path, std::strerror(errno)));
}

SharedMemory offer_of(const Descriptor& memory) {
  struct stat status {};
  if (fstat(memory.get(), &status) != 0) throw_errno("look at shared memory");
  return {getpid(), memory.get(), status.st_dev, status.st_ino, uint64_t(status.st_size)};
}

Descriptor open_offered(const SharedMemory& offer) {
  Descriptor memory = open_of_peer(offer.pid, offer.fd);
  const SharedMemory found = offer_of(memory);
  if (found.device == offer.device && found.inode == offer.inode && found.bytes == offer.bytes) return memory;
  throw RunError(
      RunError::Reason::mismatch,
      fmt::format("/proc/{}/fd/{} is a file of {} bytes, and not the {} bytes of shared memory that a "
                  "peer offers there: are the ranks in different process namespaces?",
                  offer.pid, offer.fd, found.bytes, offer.bytes));
}

uint64_t size_of(const Descriptor& memory) {
  struct stat status {};
  return fstat(memory.get(), &status) == 0 ? uint64_t(status.st_size) : 0;
}

}  // namespace chorale::system
