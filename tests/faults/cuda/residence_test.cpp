/// \file
/// Tests plans with more thread blocks than a GPU can hold at once.

#include <cuda_runtime_api.h>

#include <cstdio>

#include "executor/cuda/device/error.hpp"
#include "tests/faults/caller.hpp"

namespace chorale::test {
namespace {

class Residence : public Faults {};
INSTANTIATE_TEST_SUITE_P(Ranks, Residence, both_ways, way_name);

constexpr int too_many = 20000;  // more than 32 on each of a few hundred multiprocessors

/// Returns a plan with too many blocks on the last rank only. No other rank can see that they do not fit.
Plan crowded(Rank& me) {
  Plan plan = by_signals(me);
  std::vector<ThreadBlock>& blocks = plan.gpus.back().threadblocks;
  while (blocks.size() < too_many) {
    ThreadBlock idle;
    idle.id = uint32_t(blocks.size());
    blocks.push_back(idle);
  }
  return plan;
}

TEST_P(Residence, of_more_blocks_than_fit_is_refused_on_all_ranks) {
  expect_good(
      {.body =
           [](Rank& me) {
             Caller caller(me);
             const Failure seen = caller.failure(crowded(me));
             must(!seen.usage && seen.reason == RunError::Reason::resources,
                  "the reason is resources: " + seen.text);
             must_have(seen.text, "rank " + std::to_string(me.ranks() - 1) + ": plan ");
             const size_t at = seen.text.find(" has ");
             must(at != std::string::npos, "the blocks are counted: " + seen.text);
             int blocks = 0, fit = 0, device = -1, multiprocessors = 0, each = 0, threads = 0;
             const int read =
                 std::sscanf(seen.text.c_str() + at,
                             " has %d thread blocks, but only %d can be resident at a time on device %d (%d "
                             "multiprocessors, %d blocks of %d threads each)",
                             &blocks, &fit, &device, &multiprocessors, &each, &threads);
             must(read == 6 && blocks == too_many, "it has all numbers: " + seen.text);
             must(each > 0 && fit == multiprocessors * each, "they belong together: " + seen.text);
             must(threads > 0 && threads <= 1024, "it is the plan's block: " + seen.text);
             int wanted = 0;
             cuda::check(cudaDeviceGetAttribute(&wanted, cudaDevAttrMultiProcessorCount, device), "a device");
             must(multiprocessors == wanted, "they are this GPU's: " + seen.text);
             // No world has stopped, and nothing of the call is kept.
             caller.run_well(by_signals(me), 1);
             must(caller.failure(crowded(me)).reason == RunError::Reason::resources, "again");
             caller.run_well(by_signals(me), 2);
           },
       .deadline = far});
}

}  // namespace
}  // namespace chorale::test
