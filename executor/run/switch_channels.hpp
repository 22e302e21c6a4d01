/// \file
/// A configuration says how GPUs realise switch channels.
#pragma once

#include "chorale/config.hpp"

namespace chorale {

/// Returns whether switch channels use multicast. Only the setting turns it on.
/// \param nvls  the variable NCCL_NVLS_ENABLE, null if unset. A user who turns NVLink multicast off there may
///              have to
/// \throws UsageError for a setting without a meaning, or one that `nvls` contradicts
bool wants_multicast(const Config& config, const char* nvls);

}  // namespace chorale
