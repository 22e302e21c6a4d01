/// \file
/// Runs a rank's part of `chorale bench`: every subject, at every size, in every mode.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chorale/config.hpp"
#include "chorale/executor.hpp"
#include "tools/bench/nccl.hpp"
#include "tools/oracle.hpp"
#include "tools/profile.hpp"
#include "tools/ranks.hpp"
#include "tools/shared.hpp"

namespace chorale::tools {

/// Says how calls reach the device: one launch each, or all in one CUDA graph.
enum class Mode : uint8_t { eager, graph };
inline constexpr Mode all_modes[] = {Mode::eager, Mode::graph};
inline constexpr const char* mode_names[] = {"eager", "graph"};

/// Holds one size of a subject.
struct Case {
  uint64_t bytes = 0;  ///< the message's bytes
  MessageSizes sizes;
  std::shared_ptr<const Oracle> oracle;
  std::string refused;  ///< why this subject cannot take this size; empty if it can
};

/// Names the libraries that are timed beside plans.
enum class Peer : uint8_t {
  none,            ///< it is a plan of ours
  nccl,            ///< NCCL in its default mode
  nccl_symmetric,  ///< NCCL with buffers in symmetric windows
  nccl_zero_cta,   ///< NCCL with such buffers, where copy engines move the data
  program,         ///< a program of the user, see peer_programs.hpp
};
inline constexpr const char* peer_names[] = {"", "NCCL", "NCCL symmetric", "NCCL zero-CTA", ""};

/// Describes the subject of a timing: a plan, or a peer for a collective.
struct Subject {
  std::string name;  ///< the plan's or the peer's name
  std::string collective;
  const Plan* plan = nullptr;  ///< for a peer: only tells the oracle the collective and the ranks
  Peer peer = Peer::none;
  std::string command;  ///< the command line of a Peer::program
  uint32_t blocks = 0;  ///< the plan's thread blocks; for NCCL the most that it may take, 0: its choice
  bool in_place = false;
  bool rank_order = false;  ///< in_rank_order(), if the request asks for it
  ReduceOp op = ReduceOp::sum;
  std::optional<PacketForm> packet;
  std::vector<Case> cases;  ///< by size
  /// Says, by size, whether an application that names no plan and has no table gets this plan. Empty: not
  /// known.
  std::vector<bool> is_default;

  bool is_plan() const { return peer == Peer::none; }
  /// Returns how NCCL moves data, for its peers.
  Nccl::Policy policy() const {
    return peer == Peer::nccl_zero_cta ? Nccl::Policy::zero_cta : Nccl::Policy::normal;
  }
};

struct BenchRequest {
  std::vector<Subject> subjects;
  size_t first_plan = 0;  ///< index in `subjects`; peers come first, so that plans are compared with them
  std::vector<uint64_t> sizes;
  uint32_t ranks = 1;
  DType dtype = DType::f32;
  std::optional<ReduceOp> override_op;
  std::optional<PacketForm> packet;
  std::string backend = "cpu";
  /// Lists limits of thread blocks, the lowest first. NCCL is timed with each. Empty: there is no limit.
  std::vector<uint32_t> limits;
  std::string trace;  ///< the file for the trace of the first subject's last launch; empty: none
  const Profiles* profiles = nullptr;  ///< gets the profiles of its last launches; null: none
  bool eager = true, graph = true, processes = false;
  unsigned warmup = 5;
  unsigned calls = 50;        ///< in one graph, or launched in a row
  double budget_us = 200000;  ///< for one timing; slower subjects get fewer calls, at least five
};

/// Holds a rank's report on one subject, size and mode. It is plain memory that processes share.
struct Report {
  std::atomic<bool> done;      ///< the other members are written
  std::atomic<bool> finished;  ///< it was timed
  double us;                   ///< the mean time of one call
  PacketForm packet;           ///< the form of packets, if it was timed
  uint64_t wrong;              ///< the wrong elements of this rank, in all checks
  char what[400];              ///< the first error in the result
  char note[1200];             ///< why it did not finish
  bool failed;                 ///< true if it failed for another reason than that it refused the call
};

/// Holds the reports of all ranks and their progress.
class BenchReports {
 public:
  BenchReports(const BenchRequest& request)
      : ranks_(request.ranks),
        sizes_(request.sizes.size()),
        per_rank_(request.subjects.size() * sizes_ * 2),
        reports_(per_rank_ * request.ranks) {}
  Report& at(uint32_t rank, size_t subject, size_t size, Mode mode) const {
    return reports_[rank * per_rank_ + (subject * sizes_ + size) * 2 + size_t(mode)];
  }
  /// Returns true if all ranks have reported something that is not in `seen`: by subject, size and mode.
  bool any_news(const std::vector<bool>& seen) const {
    for (size_t at = 0; at < per_rank_; ++at) {
      size_t rank = 0;
      if (seen[at]) continue;
      while (rank < ranks_ && reports_[rank * per_rank_ + at].done) ++rank;
      if (rank == ranks_) return true;
    }
    return false;
  }
  struct Common {
    std::atomic<uint32_t> subject, size;  ///< where rank 0 is
    char nccl_version[32];
  };
  Common& common() const { return common_[0]; }

 private:
  size_t ranks_, sizes_, per_rank_;
  Shared<Report> reports_;
  Shared<Common> common_{1};
};

/// Times and checks all subjects of the request on one rank.
/// \throws what Executor throws, for errors that end the whole run. An error that ends one subject goes into
/// its report
void bench_rank(World&, const BenchRequest&, const Config&, const BenchReports&);

}  // namespace chorale::tools
