/// \file
/// --profile: where the time of the last launch of each size went, in words.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "chorale/machine.hpp"
#include "chorale/profile.hpp"

namespace chorale::tools {

/// What --profile asks of the executor.
void profile_by(Config& config, bool wanted);

/// Lines of text, as docs/traces.md explains them.
/// \param bytes  of the message
std::string text_of(const Profile&, const Plan&, uint64_t bytes, Clocks);

/// A call whose last launch is looked at.
struct ProfiledCall {
  Arguments arguments = {};
  bool eager = true;                       ///< a launch; else one of a CUDA graph
  std::optional<double> in_a_row_us = {};  ///< what one took of many in a row, where that was measured
};

/// What ranks say of their launches, for the command to print behind its results. Made before the ranks are
/// started, which may be processes.
class Profiles {
 public:
  /// \param machine  whose prediction is put beside them; none: no prediction
  explicit Profiles(std::optional<Machine> machine = {});

  /// Collective: rank 0 adds the profiles of the last launches of these calls, of what all ranks' executors,
  /// made with `config`, have traced.
  /// \throws RunError, on all ranks, if they cannot be kept
  void add(World& world, const Executor& executor, const Config& config, const Plan& plan,
           std::span<const ProfiledCall> calls) const;

  /// What was added, when the ranks have ended.
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
