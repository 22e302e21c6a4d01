// These functions read the settings for host schedules from a configuration.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "chorale/did_you_mean.hpp"
#include "chorale/error.hpp"
#include "chorale/tuner.hpp"

namespace chorale {

schedule::Mover tuned_mover(const TuneConfig& config, schedule::Mover otherwise) {
  if (config.mover.empty()) return otherwise;
  const auto known =
      std::find(std::begin(schedule::mover_names), std::end(schedule::mover_names), config.mover);
  if (known == std::end(schedule::mover_names))
    throw UsageError(fmt::format("a configuration has the mover '{}', expected one of {}{}", config.mover,
                                 fmt::join(schedule::mover_names, ", "),
                                 did_you_mean(config.mover, schedule::mover_names)));
  return schedule::Mover(known - std::begin(schedule::mover_names));
}

std::map<std::string, std::string, std::less<>> tuned_lowering(const TuneConfig& config) {
  std::map<std::string, std::string, std::less<>> parameters;
  for (const auto& [name, value] :
       {std::pair("order", config.order), std::pair("style", config.style), std::pair("via", config.mover)})
    if (!value.empty()) parameters[name] = value;
  return parameters;
}

}  // namespace chorale
