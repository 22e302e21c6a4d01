/// \file
/// Prints where the time of the last launch of each size went, for --profile.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "chorale/executor.hpp"
#include "chorale/machine.hpp"
#include "chorale/profile.hpp"

namespace chorale::tools {

/// Sets up the executor's configuration for --profile.
void profile_by(Config& config, bool wanted);

/// Returns the profile as lines of text, which docs/traces.md explains.
/// \param bytes  the message's bytes
std::string text_of(const Profile&, const Plan&, uint64_t bytes, Clocks);

/// Describes a call whose last launch is profiled.
struct ProfiledCall {
  Arguments arguments = {};
  bool eager = true;                       ///< an eager launch; else one of a CUDA graph
  std::optional<double> in_a_row_us = {};  ///< the mean time of a call in a row, if it was measured
};

/// Collects the profiles of the ranks' launches, which the command prints after its results. Make it before
/// the ranks start, because they may be processes.
class Profiles {
 public:
  /// \param machine  its prediction stands beside the profiles; none: no prediction
  explicit Profiles(std::optional<Machine> machine = {});

  /// Collective: rank 0 adds the profiles of the last launches of these calls. They come from the traces of
  /// all ranks' executors, which were made with `config`.
  /// \throws RunError, on all ranks, if the profiles cannot be stored
  void add(World& world, const Executor& executor, const Config& config, const Plan& plan,
           std::span<const ProfiledCall> calls) const;

  /// Returns the profiles that were added. Call it when the ranks have ended.
  std::string text() const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void keep(const std::string& text) const;

  std::optional<Machine> machine_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace chorale::tools
