#include "switch_channels.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "chorale/error.hpp"

namespace chorale {
namespace {

/// Returns whether the variable turns multicast off. A word that is not a number also turns it off, because a
/// user who writes "no" or "off" does not want it on.
bool turns_off(const char* nvls) { return nvls && *nvls && std::strtoll(nvls, nullptr, 0) == 0; }

}  // namespace

bool wants_multicast(const Config& config, const char* nvls) {
  const std::string& wanted = config.switch_channels.value;
  if (wanted == "peer") return false;
  if (wanted != "multicast")
    throw UsageError(fmt::format("switch_channels '{}': neither 'peer' nor 'multicast'", wanted));
  if (turns_off(nvls)) {
    throw UsageError(fmt::format(
        "switch_channels = multicast ({}), but NCCL_NVLS_ENABLE={} turns NVLink multicast off: take "
        "switch_channels = peer, or unset NCCL_NVLS_ENABLE if this machine may use multicast",
        config.switch_channels.from, nvls));
  }
  return true;
}

}  // namespace chorale
