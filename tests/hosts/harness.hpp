/// \file
/// Runs ranks as processes of one machine that count as several hosts. Traffic between these hosts goes over
/// UCX.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "chorale/compile.hpp"
#include "chorale/make_plan.hpp"
#include "executor/ucx/ucx_link.hpp"
#include "tests/cpu/harness.hpp"
#include "tests/forked.hpp"
#include "tests/free_port.hpp"

namespace chorale::test {

/// Holds the number of each rank's host, by rank.
using HostsOfRanks = std::vector<int>;

/// Runs `f` on ranks that exit with its value: 0 is success. Returns how they ended, with signals as negative
/// numbers.
template <class F>
std::vector<int> on_hosts(const HostsOfRanks& hosts, const F& f,
                          std::chrono::nanoseconds timeout = std::chrono::seconds(60)) {
  const std::string address = free_address();
  return forked(int(hosts.size()), [&](int rank) {
    JoinOptions options;
    options.host = std::to_string(hosts[size_t(rank)]);
    options.timeout = timeout;
    World world = World::join(address, rank, int(hosts.size()), options);
    return f(world);
  });
}

inline std::vector<int> all_well(const HostsOfRanks& hosts) { return std::vector<int>(hosts.size(), 0); }

/// Returns the exit status of a rank: 0 if `wrong` is empty. Prints `wrong` otherwise.
inline int verdict(const std::string& wrong) {
  if (wrong.empty()) return 0;
  fprintf(stderr, "%s\n", wrong.c_str());
  return 1;
}

/// Returns a plan whose proof fails, because its sender does not wait. It shows what the executor guarantees
/// without a proof.
inline Plan unproved(const std::string& name, int ranks) {
  dsl::Program program = dsl::build(name, {{"ranks", std::to_string(ranks)}});
  CompileOptions options = program.compile_options();
  options.allow = {"deadlock", "races", "values", "replay"};
  dsl::Compiled compiled = std::move(program).compile(options);
  if (!compiled.ok()) throw std::invalid_argument(render(compiled.plan, compiled.diagnostics));
  return std::move(compiled.plan);
}

/// Runs the cases over the UCX transport that the parameter names; "all" leaves the choice to UCX.
class Hosts : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    setenv("UCX_TLS", GetParam(), 1);
#ifndef CHORALE_WITH_UCX
    GTEST_SKIP() << "this library was built without UCX";
#endif
  }
  void TearDown() override { unsetenv("UCX_TLS"); }
};

inline const auto both_transports = testing::Values("tcp", "all");
inline std::string transport_name(const testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace chorale::test
