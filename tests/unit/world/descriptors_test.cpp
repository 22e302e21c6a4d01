#include "executor/world/descriptors.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <iterator>

#include "processes.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;
using system::Descriptor;
using world::DescriptorPassing;
using Method = DescriptorPassing::Method;

/// Returns a file without a name or a path, like CUDA's.
Descriptor file_with(int value) {
  Descriptor file(memfd_create("test", MFD_CLOEXEC));
  [[maybe_unused]] const ssize_t written = write(file.get(), &value, sizeof value);
  return file;
}

int value_in(const Descriptor& file) {
  int value = -1;
  return pread(file.get(), &value, sizeof value, 0) == sizeof value ? value : -1;
}

size_t open_files() {
  const std::filesystem::directory_iterator folder("/proc/self/fd");
  return size_t(std::distance(begin(folder), end(folder)));
}

/// Every rank passes `rank * each` files, of value rank * 1000 + at; rank 0 wants none of rank 1.
std::string pass_once(World& world, DescriptorPassing& passing, int each) {
  const int rank = world.rank(), ranks = world.ranks();
  std::vector<Descriptor> files;
  std::vector<int> numbers;
  for (int at = 0; at < rank * each; ++at) {
    files.push_back(file_with(rank * 1000 + at));
    numbers.push_back(files.back().get());
  }
  std::vector<bool> wanted(ranks, true);
  wanted[rank] = false;
  if (rank == 0) wanted[1] = false;
  const auto all = passing.pass(world, numbers, wanted);
  files.clear();
  for (int peer = 0; peer < ranks; ++peer) {
    const size_t expected = wanted[peer] ? size_t(peer * each) : 0;
    if (all[peer].size() != expected) return "wrong number of files";
    for (size_t at = 0; at < expected; ++at) {
      if (value_in(all[peer][at]) != peer * 1000 + int(at)) return "wrong file";
    }
  }
  return "good";
}

class Passing : public testing::TestWithParam<std::optional<Method>> {};

TEST_P(Passing, FilesComeInOrderAndNoneStaysOpen) {
  const std::string address = fresh_address();
  Processes ranks(3, [&](int rank) -> std::string {
    World world = World::join(address, rank, 3, {.timeout = 60s});
    DescriptorPassing passing(world, GetParam());
    if (GetParam() && passing.method() != *GetParam()) return "wrong method";
    size_t open = 0;
    for (int round = 0; round < 50; ++round) {
      const std::string said = pass_once(world, passing, round % 3);
      if (said != "good") return said;
      if (round == 10) open = open_files();
    }
    const std::string said = pass_once(world, passing, 150);  // more than one message holds
    if (said != "good") return said;
    return open_files() == open ? "good" : "files stay open";
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.said(rank), "good") << rank;
}

TEST_P(Passing, AFileThatIsNotThereIsNamedEverywhere) {
  const std::string address = fresh_address();
  Processes ranks(3, [&](int rank) -> std::string {
    World world = World::join(address, rank, 3, {.timeout = 60s});
    DescriptorPassing passing(world, GetParam());
    // The bad file comes so late that one message has already been sent.
    std::vector<int> mine(301, STDERR_FILENO);
    mine.back() = 4711;
    if (rank != 2) mine.clear();
    try {
      passing.pass(world, mine, std::vector<bool>(3, rank == 1));
      return "passed";
    } catch (const RunError& error) {
      if (!strstr(error.what(), "Bad file descriptor")) return error.what();
    }
    return pass_once(world, passing, 3);  // the next call is not disturbed
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.said(rank), "good") << rank;
}

INSTANTIATE_TEST_SUITE_P(World, Passing, testing::Values(std::optional<Method>(), Method::take, Method::send),
                         [](const auto& info) -> std::string {
                           if (!info.param) return "AsAllowed";
                           return *info.param == Method::take ? "Taken" : "Sent";
                         });

TEST(DescriptorPassing, ThreadsOfOneProcess) {
  std::vector<std::string> said(2);
  run_local(2, [&](World& world) {
    DescriptorPassing passing(world, Method::send);
    said[world.rank()] = pass_once(world, passing, 5);
  });
  EXPECT_EQ(said, std::vector<std::string>(2, "good"));
}

}  // namespace
}  // namespace chorale::test
