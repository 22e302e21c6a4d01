/// \file
/// Runs benchmarks whose ranks are processes with one GPU each.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

namespace chorale::bench {

/// Reports that a result is wrong.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Lists the exit statuses of benchmarks.
enum Status : int { bars_met = 0, bars_missed = 1, result_wrong = 2, did_not_run = 3 };

/// Calls run_rank(rank, address) in one process per rank, with an address at which the ranks may connect.
/// Returns the worst of their exit statuses. Call it before any use of CUDA, which does not survive a fork.
int run_in_processes(int ranks, const std::string& name,
                     const std::function<int(int rank, const std::string& address)>& run_rank);

}  // namespace chorale::bench
