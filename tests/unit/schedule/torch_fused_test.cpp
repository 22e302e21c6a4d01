// These tests check how bench_overlap reads the output of torch_fused.py. A shell script replaces the
// interpreter.

#include "bench/overlap/torch_fused.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "bench/common/processes.hpp"

namespace chorale::test {
namespace {

using namespace overlap;

const std::string script = CHORALE_SOURCE_DIR "/bench/overlap/torch_fused.py";
const std::vector<TorchTime> both = {{TorchOperation::gather, {64, 32, 16}, 0},
                                     {TorchOperation::scatter, {64, 32, 16}, 0}};

/// Prints `body` in place of Python's output.
class Interpreter {
 public:
  explicit Interpreter(const std::string& body) {
    char name[] = "/tmp/chorale-interpreter-XXXXXX";
    folder_ = ::mkdtemp(name);
    std::ofstream(path()) << "#!/bin/sh\n" << body << "\n";
    ::chmod(path().c_str(), 0700);
  }
  ~Interpreter() { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/it's python"; }
  std::vector<TorchTime> times() const { return time_torch(path(), "a script", 2, both); }

 private:
  std::string folder_;
};

TEST(TorchFused, TheFasterTimeOfEachShape) {
  const Interpreter python(R"(
[ "$*" = "a script 2 gather:64,32,16 scatter:64,32,16" ] || exit 3
echo '{"shape": "gather:64,32,16", "us": 2000, "how": "eager"}'
echo 'NCCL version 2.28.3'
echo '{"shape": "scatter:64,32,16", "us": 3500.5, "how": "eager"}'
echo '{"shape": "gather:64,32,16", "us": 1500, "how": "graph"}'
echo '{"shape": "gather:64,32,17", "us": 1, "how": "graph"}')");
  const std::vector<TorchTime> times = python.times();
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].operation, TorchOperation::gather);
  EXPECT_EQ(times[0].ms, 1.5);
  EXPECT_EQ(times[1].operation, TorchOperation::scatter);
  EXPECT_EQ(times[1].ms, 3.5005);
}

TEST(TorchFused, WhatWasTimedBeforeAFailureCounts) {
  EXPECT_EQ(Interpreter(R"(echo '{"shape": "gather:64,32,16", "us": 2000}'; exit 3)").times().size(), 1u);
  EXPECT_EQ(time_torch("/no/such/interpreter", script, 2, both).size(), 0u);
}

TEST(TorchFused, AWrongResultIsOne) { EXPECT_THROW(Interpreter("exit 2").times(), bench::Wrong); }

/// Runs the script itself, without PyTorch and GPUs.
TEST(TorchFused, TheScriptRefusesMulticast) {
  for (const auto& [name, value] :
       {std::pair("NCCL_NVLS_ENABLE", "1"), {"TORCH_SYMM_MEM_DISABLE_MULTICAST", "0"}}) {
    ::setenv(name, value, 1);
    testing::internal::CaptureStderr();
    EXPECT_EQ(time_torch("python3", script, 2, both).size(), 0u);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(std::string(name) + " is '" + value + "', but must be"), std::string::npos) << said;
    ::unsetenv(name);
  }
}

}  // namespace
}  // namespace chorale::test
