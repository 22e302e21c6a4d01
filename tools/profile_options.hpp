/// \file
/// The options --profile and --machine of `run` and `bench`.
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
  /// \param what  says what --profile does
  void declare(CLI::App&, const std::string& what);

  /// Makes the profiles; none if --profile was not given. Call it before anything takes long.
  /// \throws Failure if the machine is none
  std::optional<Profiles> profiles() const;
};

}  // namespace chorale::tools
