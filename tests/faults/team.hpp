/// \file
/// The ranks of a case: processes, or threads of one process that is not the test's own, under a watchdog. A
/// team lives on from case to case, so that the next case meets what a fault leaves behind in a process, and
/// a GPU is set up once. After a failure, or when a rank is to die, the next case gets a new team.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <ostream>
#include <string>

#include "chorale/config.hpp"
#include "chorale/world.hpp"

namespace chorale::test {

enum class Ranks { processes, threads };
inline void PrintTo(Ranks how, std::ostream* out) {
  *out << (how == Ranks::processes ? "processes" : "threads");
}

/// One rank of a case.
struct Rank {
  World world, second;  ///< of the same ranks, with nothing in common
  Config config;
  std::string fresh;  ///< part of an address that nobody else has, the same on all ranks

  int rank() const { return world.rank(); }
  int ranks() const { return world.ranks(); }
  bool last() const { return rank() == ranks() - 1; }
};

/// The work of every rank; throws if something is not as it should be. It is a plain function, since
/// processes call it that were forked before.
using Body = void (*)(Rank&);

struct Case {
  Body body;
  int ranks = 0;                                                     ///< 0: Device::ranks()
  std::chrono::milliseconds deadline{60000};                         ///< of every wait; 0: none
  std::optional<std::chrono::milliseconds> deadline_of_rank_0 = {};  ///< processes only
  int killed = -1;                                                   ///< a rank that ends by SIGKILL
};

/// A limit that no case reaches, so that a wait which would end by it is found hanging.
inline constexpr std::chrono::hours far{1};
/// A deadline that is to be reached. It is so far off that whatever does come is there before, even on a busy
/// machine.
inline constexpr std::chrono::seconds soon{3};

/// Runs a case; fails the test with what each rank has to say.
void expect_good(Ranks how, const Case& of);

/// Throw if the condition does not hold.
void must(bool holds, const std::string& what);
void must_have(const std::string& text, const std::string& part);
void must_match(const std::string& text, const std::string& regex);

/// Cases that run both ways: INSTANTIATE_TEST_SUITE_P(Ranks, X, both_ways, way_name).
class Faults : public testing::TestWithParam<Ranks> {
 protected:
  void SetUp() override;
  void expect_good(const Case& of) { test::expect_good(GetParam(), of); }
};

inline const auto both_ways = testing::Values(Ranks::processes, Ranks::threads);
inline std::string way_name(const testing::TestParamInfo<Ranks>& info) {
  return testing::PrintToString(info.param);
}

/// Cases that need processes.
class FaultsOfProcesses : public testing::Test {
 protected:
  void SetUp() override;
  void expect_good(const Case& of) { test::expect_good(Ranks::processes, of); }
};

}  // namespace chorale::test
