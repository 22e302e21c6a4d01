/// \file
/// Declares the options --profile and --machine of `run` and `bench`.
#pragma once

#include <optional>
#include <string>

#include "tools/command.hpp"
#include "tools/profile.hpp"

namespace chorale::tools {

struct ProfileOptions {
  bool profile = false;
  std::optional<std::string> machine;

  /// Declares the options.
  /// \param what  the description of --profile
  void declare(CLI::App&, const std::string& what);

  /// Returns the profiles; nothing if --profile was not given. Call it before long work.
  /// \throws Failure if the machine's file is not a machine
  std::optional<Profiles> profiles() const;
};

}  // namespace chorale::tools
