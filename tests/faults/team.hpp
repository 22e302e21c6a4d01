/// \file
/// Runs the ranks of a case: as processes, or as threads of one process other than the test's, under a
/// watchdog. A team lives on from case to case, so that the next case meets what a fault leaves behind in a
/// process, and so that a GPU is set up only once. After a failure, or when a rank must die, the next case
/// gets a new team.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "chorale/config.hpp"
#include "chorale/world.hpp"
#include "tests/unit/world/ranks.hpp"

namespace chorale::test {

/// Describes one rank of a case.
struct Rank {
  World world, second;  ///< two worlds of the same ranks that share nothing
  Config config;
  std::string fresh;  ///< a part of an address that no other case uses, the same on all ranks

  int rank() const { return world.rank(); }
  int ranks() const { return world.ranks(); }
  bool last() const { return rank() == ranks() - 1; }
};

/// Does the work of every rank; throws if something is wrong. It is a plain function, because processes that
/// were forked earlier call it.
using Body = void (*)(Rank&);

struct Case {
  Body body;
  int ranks = 0;                                                     ///< 0: Device::ranks()
  std::chrono::milliseconds deadline{60000};                         ///< of every wait; 0: none
  std::optional<std::chrono::milliseconds> deadline_of_rank_0 = {};  ///< processes only
  int killed = -1;                                                   ///< a rank that ends by SIGKILL
};

/// Gives a limit that no case reaches, so that a wait which would end by it is reported as hanging.
inline constexpr std::chrono::hours far{1};
/// Gives a deadline that the case must reach. It is long enough that everything that arrives at all arrives
/// before it, even on a busy machine.
inline constexpr std::chrono::seconds soon{3};

/// Runs a case. Fails the test with each rank's error.
void expect_good(Ranks how, const Case& of);

/// Throw if the condition does not hold.
void must(bool holds, const std::string& what);
void must_have(const std::string& text, const std::string& part);
void must_match(const std::string& text, const std::string& regex);

/// Runs cases in both ways: INSTANTIATE_TEST_SUITE_P(Ranks, X, both_ways, way_name).
class Faults : public testing::TestWithParam<Ranks> {
 protected:
  void SetUp() override;
  void expect_good(const Case& of) { test::expect_good(GetParam(), of); }
};

inline const auto both_ways = testing::Values(Ranks::processes, Ranks::threads);
inline std::string way_name(const testing::TestParamInfo<Ranks>& info) {
  return testing::PrintToString(info.param);
}

/// Runs cases that need processes.
class FaultsOfProcesses : public testing::Test {
 protected:
  void SetUp() override;
  void expect_good(const Case& of) { test::expect_good(Ranks::processes, of); }
};

}  // namespace chorale::test
