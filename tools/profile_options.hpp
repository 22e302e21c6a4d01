/// \file
/// --profile and --machine, as `run` and `bench` have them.
#pragma once

#include <optional>
#include <string>

#include "tools/command.hpp"
#include "tools/profile.hpp"

namespace chorale::tools {

struct ProfileOptions {
  bool profile = false;
  std::optional<std::string> machine;

  /// \param what  --profile does
  void declare(CLI::App&, const std::string& what);

  /// To be asked for before anything takes long. None: --profile was not given.
  /// \throws Failure for a machine that is none
  std::optional<Profiles> profiles() const;
};

}  // namespace chorale::tools
