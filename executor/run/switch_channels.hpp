#pragma once

#include "chorale/config.hpp"

namespace chorale {

/// Returns whether switch channels use multicast. Only the setting switch_channels turns it on.
/// \param nvls  the variable NCCL_NVLS_ENABLE, null if unset. It must be respected, because multicast may not
///              work on a machine whose user turns it off there
/// \throws UsageError for an unknown setting, or for one that `nvls` contradicts
bool wants_multicast(const Config& config, const char* nvls);

}  // namespace chorale
