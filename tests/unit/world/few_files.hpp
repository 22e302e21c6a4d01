/// \file
/// Lets a process open no more files.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace chorale::test {

/// While an object of this class lives, this process cannot open files, if `poor`.
class FewFiles {
 public:
  explicit FewFiles(bool poor) {
    getrlimit(RLIMIT_NOFILE, &before_);
    if (!poor) return;
    const int next = ::open("/dev/null", O_RDONLY);
    ::close(next);
    const rlimit none_more{rlim_t(next), before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none_more);
  }
  ~FewFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewFiles(const FewFiles&) = delete;

 private:
  rlimit before_{};
};

}  // namespace chorale::test
