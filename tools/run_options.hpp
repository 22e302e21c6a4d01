/// \file
/// Declares the options that `run` and `bench` share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/config.hpp"
#include "chorale/executor.hpp"
#include "tools/command.hpp"
#include "tools/profile.hpp"
#include "tools/programs.hpp"
#include "tools/rank_gpus.hpp"

namespace chorale::tools {

struct RunOptions {
  std::string dtype = "f32", op, backend, packet, timeout;
  uint32_t ranks = 0, workers = 0;
  std::optional<uint32_t> max_blocks;
  std::vector<std::string> allow;
  bool processes = false, threads = false, share_gpus = false;

  void declare(CLI::App&);
  /// Declares --max-blocks, for commands that choose plans.
  void declare_max_blocks(CLI::App&);

  /// Returns the configuration, with the command line's settings applied.
  Config config() const;
  DType type() const;
  /// Returns the operator of the command line, if it has one.
  /// \throws Failure if there is one and `any_reduces` is false, because it would change nothing
  std::optional<ReduceOp> reduce_op(bool any_reduces) const;
  std::optional<PacketForm> packet_form() const;
  /// Returns true if each rank is a process: as the command line says, otherwise only on cuda.
  bool as_processes(const Config&) const;
  /// Finds the GPUs of this machine. It looks for none unless the backend is cuda.
  /// \throws Failure if there are fewer GPUs than ranks
  RankGpus gpus(const Config&, uint32_t ranks) const;
};

/// Returns the sizes of `asked`, as parse_sizes() does. If it is empty, returns the sizes of `otherwise`,
/// each rounded down to whole elements for every rank, but at least one. nccl-tests also rounds messages that
/// are cut into parts.
std::vector<uint64_t> sizes_for(const std::string& asked, const std::string& otherwise, uint32_t ranks,
                                DType dtype);

/// Compiles a program or reads a plan, for `ranks` ranks if not 0. Checks it, and proves everything except
/// what `allow` names. Returns the findings too.
Built built_for(const Wanted&, uint32_t ranks, const std::vector<std::string>& allow);

/// Returns the plan of built_for(), which must have no findings and be for that number of ranks.
/// \throws Failure plan_wrong after it has reported the findings
Plan plan_for(const Wanted&, uint32_t ranks, const std::vector<std::string>& allow);

/// Holds the options --profile, --machine and --topology.
struct ProfileOptions {
  bool profile = false;
  std::optional<std::string> machine;
  std::string topology;

  /// Declares the options.
  /// \param what  the description of --profile
  void declare(CLI::App&, const std::string& what);

  /// Returns the profiles; nothing if --profile was not given. Call it before long work.
  /// \param no_times  whether --no-times was given, which a profile contradicts
  /// \throws Failure if the machine's file is not a machine, or there is no such topology
  std::optional<Profiles> profiles(bool no_times) const;
};

}  // namespace chorale::tools
