/// \file
/// Stops a process from getting more address space, for tests of what happens then.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <string>

namespace chorale::test {

/// Returns the address space of this process in kilobytes.
inline long address_space() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmSize:" && status >> word) return std::stol(word);
  }
  return 0;
}

/// Lets the process use `megabytes` more than now, while the object exists. It does not work with sanitizers,
/// because their shadow memory is address space, too.
class ScarceMemory {
 public:
  explicit ScarceMemory(long megabytes) {
    getrlimit(RLIMIT_AS, &before_);
    rlimit less = before_;
    less.rlim_cur = rlim_t(address_space() + megabytes * 1024) * 1024;
    EXPECT_EQ(setrlimit(RLIMIT_AS, &less), 0);
  }
  ~ScarceMemory() { setrlimit(RLIMIT_AS, &before_); }
  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;

 private:
  rlimit before_{};
};

}  // namespace chorale::test
