#include "chorale/write_error.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace chorale {
namespace {

sigset_t the_signal() {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, SIGXFSZ);
  return only;
}

bool is_pending() {
  sigset_t pending;
  return ::sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

}  // namespace

std::string write_error(int error) {
  const std::string text = std::generic_category().message(error);
  rlimit limit{};
  if (error != EFBIG || ::getrlimit(RLIMIT_FSIZE, &limit) != 0) return text;
  if (limit.rlim_cur == RLIM_INFINITY) return text;
  return fmt::format(
      "{}: RLIMIT_FSIZE lets this process write files of at most {} bytes; raise it (ulimit -f), or lift it "
      "(ulimit -f unlimited)",
      text, uint64_t(limit.rlim_cur));
}

FileLimitAsError::FileLimitAsError() : pending_before_(is_pending()) {
  const sigset_t only = the_signal();
  sigset_t before;
  if (::pthread_sigmask(SIG_BLOCK, &only, &before) == 0) blocked_before_ = sigismember(&before, SIGXFSZ) == 1;
}

FileLimitAsError::~FileLimitAsError() {
  const int error = errno;
  const sigset_t only = the_signal();
  // The kernel has sent the signal to this thread only, where it is pending.
  const timespec at_once{};
  while (!pending_before_ && ::sigtimedwait(&only, nullptr, &at_once) < 0 && errno == EINTR) {
  }
  if (!blocked_before_) ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  errno = error;
}

}  // namespace chorale
