#include "executor/system/shared_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>

#include "executor/fibers/sanitizers.hpp"
#include "tests/has.hpp"
#include "tests/unit/thrown.hpp"

namespace {

/// Reports how posix_fallocate() behaves while a timer fires again and again, on a kernel that it interrupts.
/// The call fails wherever a signal may come in, and keeps nothing of what it has allocated.
struct Struck {
  std::atomic<bool> on{false};
  int interrupted = 0;
  off_t longest = 0;
} struck;

}  // namespace

extern "C" int posix_fallocate(int file, off_t at, off_t bytes) {
  if (struck.on) {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    struck.longest = std::max(struck.longest, bytes);
    if (!sigismember(&blocked, SIGALRM)) return ++struck.interrupted < 1000 ? EINTR : EIO;
  }
  return fallocate(file, 0, at, bytes) == 0 ? 0 : errno;
}

namespace chorale::test {
namespace {

/// The timer is a profiler's, or an application's. No signal is delayed for the whole call either.
TEST(SharedMemory, SignalsDoNotKeepItFromBeingMade) {
  struck.on = true;
  const uint64_t bytes = (uint64_t(40) << 20) + 1;
  const std::string said = thrown([&] { EXPECT_EQ(system::size_of(system::create_shared(bytes)), bytes); });
  struck.on = false;
  EXPECT_EQ(said, "nothing");
  EXPECT_EQ(struck.interrupted, 0);
  EXPECT_LE(struck.longest, off_t(16) << 20);
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_FALSE(sigismember(&blocked, SIGALRM));
}

TEST(SharedMemory, TooLittleAddressSpaceSaysWhatToDo) {
#if defined(CHORALE_ASAN)
  GTEST_SKIP() << "shadows of the sanitizers are address space";
#endif
  const system::Descriptor memory = system::create_shared(4096);
  const std::string said = thrown([&] { system::Mapping(memory, uint64_t(1) << 60); });
  EXPECT_TRUE(has(said, "resources: cannot map 1152921504606846976 bytes of shared memory: ") &&
              has(said, "(ulimit -v)"))
      << said;
}

/// The offer leads to another file, as when the number of a process was reused.
TEST(SharedMemory, AnotherFileThanAPeerOffersIsFound) {
  const system::Descriptor right = system::create_shared(4096), wrong = system::create_shared(4096);
  system::SharedMemory offer = system::offer_of(right);
  EXPECT_EQ(system::offer_of(system::open_offered(offer)).inode, offer.inode);
  offer.fd = wrong.get();
  const std::string said = thrown([&] { system::open_offered(offer); });
  EXPECT_TRUE(has(said, "mismatch: /proc/") && has(said, "are the ranks in different process namespaces?"))
      << said;
}

}  // namespace
}  // namespace chorale::test
