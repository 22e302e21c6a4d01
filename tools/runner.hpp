/// \file
/// Runs a plan on test data, on threads or processes of this machine, and compares every result.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/config.hpp"
#include "chorale/executor.hpp"
#include "tools/oracle.hpp"

namespace chorale::tools {

struct RunRequest {
  std::vector<uint64_t> sizes;  ///< bytes of the message
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
  bool override_op = false;  ///< hand `op` to the executor; else the plan's own is used
  std::optional<PacketForm> packet;
  bool in_place = false;
  bool processes = false;  ///< a process a rank; else threads of this one
  unsigned repeat = 3;     ///< timed runs of each size
  /// False: every run has new data and is compared. True: one run of each size is compared before the timed
  /// ones and one after them, which are then run without touching the data.
  bool bench = false;
  unsigned warmup = 0;  ///< runs before the timed ones
};

/// What came of one size.
struct SizeResult {
  std::vector<double> times_us;      ///< of each timed run: the slowest rank's
  std::optional<std::string> wrong;  ///< the first wrong element, or what else was wrong
  bool finished = false;
};

struct RunOutcome {
  std::vector<SizeResult> sizes;
  std::string error;  ///< why the run ended early; empty if it did not
};

/// \throws Failure, UsageError for what can be said before anything runs
RunOutcome run_plan(const Plan&, const RunRequest&, const Config&);

/// What one rank reports; plain memory, so that it can be shared between processes.
struct RankReport {
  static constexpr size_t text_bytes = 4096;
  struct Size {
    std::atomic<bool> finished;
    bool wrong;
    char what[512];
  };
  char error[text_bytes];
  RunError::Reason reason;
  std::atomic<bool> failed;
  std::atomic<uint32_t> done;  ///< sizes finished
};

/// The reports of all ranks in one mapping that children share.
class Reports {
 public:
  Reports(uint32_t ranks, size_t sizes, size_t repeats);
  ~Reports();
  Reports(const Reports&) = delete;
  RankReport& rank(uint32_t rank) const;
  RankReport::Size& size(uint32_t rank, size_t size) const;
  double& time(uint32_t rank, size_t size, size_t repeat) const;
  void fail(uint32_t rank, RunError::Reason, const std::string& message);

 private:
  std::byte* memory_;
  size_t bytes_, stride_, sizes_, repeats_;
};

/// One rank's part of a run. \throws as Executor
void run_rank(World&, const Plan&, const RunRequest&, const Config&, const std::vector<Oracle>&, Reports&);

/// Runs the ranks as processes; what ended the run early, or "".
std::string run_processes(const Plan&, const RunRequest&, const Config&, const std::vector<Oracle>&,
                          Reports&);

}  // namespace chorale::tools
