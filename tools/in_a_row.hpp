/// \file
/// Launches of one plan behind each other, as an application makes them that does not wait in between.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "chorale/executor.hpp"
#include "tools/check_run.hpp"
#include "tools/device.hpp"
#include "tools/oracle.hpp"

namespace chorale::tools {

/// One rank's. Each launch has data of its own, which is copied into the buffers before it and out of them
/// behind it, on the stream. Some launches are eager and others in CUDA graphs, one to four in each, which
/// every rank draws for itself; now and then a rank comes late. Nothing waits until all are enqueued.
class LaunchesInARow {
 public:
  /// Captures the graphs. \param arguments  prepared, with `buffers`
  LaunchesInARow(Device& device, Executor& executor, const Plan& plan, const Arguments& arguments,
                 const Oracle& oracle, uint32_t rank, const Buffers& buffers, unsigned launches);

  /// New data for all launches, which are the oracle's turns from `turn` on. A barrier has to follow, as with
  /// CheckRun::fill().
  void fill(uint64_t turn);
  /// Enqueues all of them; graphs that were captured are replayed.
  void enqueue();
  /// Of the first launch that has got something wrong.
  Findings compare(uint64_t turn);

 private:
  struct Group {
    unsigned first = 0, launches = 1;
    std::unique_ptr<Graph> graph;  ///< null: they are eager
    unsigned late_us = 0;          ///< how long the rank waits before it
  };
  void launch(const Group& group);
  /// What is in the rank's buffers, and what is behind them: to a launch's own memory, or from there.
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
