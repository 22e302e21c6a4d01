// These tests run the built-in functions of host schedules on the CPU; cuda_schedules runs the same on a GPU.

#include <gtest/gtest.h>

#include "function_cases.hpp"

namespace chorale::test {
namespace {

TEST(ScheduleFunctions, BuiltInOnesGiveWhatTheyMean) {
  run_local(1, [](World& world) {
    std::map<std::string, Bytes> found;
    EXPECT_EQ(function_cases().run(
                  world, Config::load(),
                  [](void* to, const void* from, uint64_t bytes) { std::memcpy(to, from, bytes); }, found),
              "good");
  });
}

}  // namespace
}  // namespace chorale::test
