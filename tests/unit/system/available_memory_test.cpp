/// \file
/// Checks how much memory a machine and its control groups report as available, with files that are not the
/// machine's.

#include "executor/system/available_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "chorale/error.hpp"
#include "chorale/window.hpp"
#include "tests/unit/message_of_error.hpp"

namespace chorale::system {
namespace {

/// Makes a folder with the contents of a machine's /proc and /sys, and removes it at the end.
class Machine {
 public:
  explicit Machine(const std::string& groups) {
    char name[] = "/tmp/chorale-machine-XXXXXX";
    root_ = mkdtemp(name);
    write("proc/meminfo", "MemTotal:       4000 kB\nMemFree:         100 kB\nMemAvailable:   3000 kB\n");
    write("proc/self/cgroup", groups);
  }
  ~Machine() { std::filesystem::remove_all(root_); }
  Machine(const Machine&) = delete;

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  uint64_t available(uint64_t enough = UINT64_MAX) const { return available_memory(enough, root_); }

 private:
  std::string root_;
};

TEST(AvailableMemory, IsTheMachinesWhereNoGroupHasLess) {
  Machine machine("0::/user/job\n");
  EXPECT_EQ(machine.available(), 3000u * 1024);
  machine.write("sys/fs/cgroup/user/job/memory.max", "max\n");
  machine.write("sys/fs/cgroup/user/job/memory.current", "5000\n");
  EXPECT_EQ(machine.available(), 3000u * 1024);
}

TEST(AvailableMemory, IsWhatTheTightestGroupLeaves) {
  Machine machine("0::/user/job\n");
  machine.write("sys/fs/cgroup/user/memory.max", "1000000\n");
  machine.write("sys/fs/cgroup/user/memory.current", "700000\n");
  EXPECT_EQ(machine.available(), 300000u);
  machine.write("sys/fs/cgroup/user/job/memory.max", "500000\n");
  machine.write("sys/fs/cgroup/user/job/memory.current", "400000\n");
  machine.write("sys/fs/cgroup/user/job/memory.stat", "anon 1\ninactive_file 50000\n");
  EXPECT_EQ(machine.available(), 150000u) << "the kernel can drop pages of files";
  machine.write("sys/fs/cgroup/memory.max", "1000\n");  // as a container sees its own group
  machine.write("sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(machine.available(), 0u);
}

TEST(AvailableMemory, CountsPagesOfFilesOnlyIfTheyAreNeeded) {
  Machine machine("0::/job\n");
  machine.write("sys/fs/cgroup/job/memory.max", "500000\n");
  machine.write("sys/fs/cgroup/job/memory.current", "400000\n");
  machine.write("sys/fs/cgroup/job/memory.stat", "inactive_file 50000\n");
  EXPECT_EQ(machine.available(100000), 100000u);
  EXPECT_EQ(machine.available(100001), 150000u);
}

TEST(AvailableMemory, IsAskedOfTheFirstVersionOfGroupsToo) {
  Machine machine("5:devices:/\n4:memory:/job\n0::/\n");
  machine.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "900000\n");
  machine.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "800000\n");
  machine.write("sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file 10000\n");
  EXPECT_EQ(machine.available(), 110000u);
}

/// Each of these windows fits alone.
TEST(AvailableMemory, IsNotExceededByWindowsOfOneHostTogether) {
  const std::vector<uint64_t> bytes(3, available_memory() / 2);
  run_local(3, [&](World& world) {
    const std::string wrong = test::message_of_error<RunError>([&] { Window::create(world, bytes); });
    EXPECT_NE(wrong.find("the window of all ranks of this host takes"), wrong.npos) << wrong;
    world.barrier();  // the world has not stopped
  });
}

TEST(AvailableMemory, IsNotExceededByWindows) {
  const uint64_t bytes = uint64_t(1) << 45;
  run_local(2, [bytes](World& world) {
    const std::string wrong = test::message_of_error<RunError>([&] { Window::create(world, bytes); });
    EXPECT_NE(wrong.find("a window takes 35184372088832 bytes of memory, but this machine"), wrong.npos)
        << wrong;
    EXPECT_NE(wrong.find("help: use smaller messages"), wrong.npos) << wrong;
    world.barrier();  // the world has not stopped
  });
}

}  // namespace
}  // namespace chorale::system
