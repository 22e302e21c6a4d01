/// \file
/// Which realisation of switch channels a configuration asks for.
#pragma once

#include "chorale/config.hpp"

namespace chorale {

/// Whether switch channels are to go by multicast. Nothing but the setting asks for it.
/// \param nvls  the variable NCCL_NVLS_ENABLE, null without: who has turned NVLink multicast off there may
/// have to \throws UsageError for a setting of no meaning, or one that `nvls` contradicts
bool wants_multicast(const Config& config, const char* nvls);

}  // namespace chorale
