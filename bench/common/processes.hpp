/// \file
/// Benchmarks whose ranks are processes, a GPU each.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

namespace chorale::bench {

/// A result that is not what it has to be.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What benchmarks exit with.
enum Status : int { bars_met = 0, bars_missed = 1, result_wrong = 2, did_not_run = 3 };

/// Calls run_rank(rank, address) in a process for each rank, with an address at which they may meet, and
/// gives the worst of their exit statuses. Call it before CUDA is touched, which does not survive a fork.
int run_in_processes(int ranks, const std::string& name,
                     const std::function<int(int rank, const std::string& address)>& run_rank);

}  // namespace chorale::bench
