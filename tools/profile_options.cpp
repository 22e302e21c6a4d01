#include "tools/profile_options.hpp"

#include <CLI/CLI.hpp>
#include <utility>

#include "tools/machine_file.hpp"

namespace chorale::tools {

void ProfileOptions::declare(CLI::App& app, const std::string& what) {
  CLI::Option* const wanted = app.add_flag("--profile", profile, what);
  app.add_option("--machine", machine,
                 "With --profile: print beside it the prediction for the machine of this file, see simulate")
      ->type_name("FILE")
      ->needs(wanted);
}

std::optional<Profiles> ProfileOptions::profiles() const {
  std::optional<Profiles> profiles;
  if (!profile) return profiles;
  std::optional<Machine> beside;
  if (machine) beside = machine_of(*machine);
  profiles.emplace(std::move(beside));
  return profiles;
}

}  // namespace chorale::tools
