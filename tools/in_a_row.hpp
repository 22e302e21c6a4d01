/// \file
/// Launches one plan many times in a row, as an application does that does not wait between launches.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "chorale/executor.hpp"
#include "tools/check_run.hpp"
#include "tools/device.hpp"
#include "tools/oracle.hpp"

namespace chorale::tools {

/// Runs one rank's launches. Each launch has its own data. The stream copies it into the buffers before the
/// launch, and out of them after it. Some launches are eager and others are in CUDA graphs of one to four
/// launches; every rank chooses this at random. Sometimes a rank starts late. Nothing waits until all
/// launches are enqueued.
class LaunchesInARow {
 public:
  /// Captures the graphs.
  /// \param arguments  prepared, with `buffers`
  LaunchesInARow(Device& device, Executor& executor, const Plan& plan, const Arguments& arguments,
                 const Oracle& oracle, uint32_t rank, const Buffers& buffers, unsigned launches);

  /// Fills in new data for all launches, which are the oracle's turns from `turn` on. The caller runs a
  /// barrier next, as after CheckRun::fill().
  void fill(uint64_t turn);
  /// Enqueues all launches. Launches that were captured are replayed.
  void enqueue();
  /// Returns the findings of the first launch whose result is wrong.
  Findings compare(uint64_t turn);

 private:
  struct Group {
    unsigned first = 0, launches = 1;
    std::unique_ptr<Graph> graph;  ///< null if the launches are eager
    unsigned late_us = 0;          ///< the time that the rank waits before it
  };
  void launch(const Group& group);
  /// Copies the rank's buffers and their guard to the memory of a launch, or back.
  void copy(const Buffers& from, const Buffers& to);

  Device& device_;
  Executor& executor_;
  const Plan& plan_;
  Arguments arguments_;
  Buffers buffers_;
  std::vector<Buffers> own_;  ///< by launch
  std::vector<CheckRun> checks_;
  std::vector<Group> groups_;
};

}  // namespace chorale::tools
