/// \file
/// Tables of the tuner, as commands use them.
#pragma once

#include <cstdint>
#include <string>

#include "chorale/config.hpp"
#include "chorale/tuned_plans.hpp"
#include "tools/rank_gpus.hpp"

namespace chorale::tools {

/// This machine, as a table knows it.
TunedFor tuned_for(const Config&, const RankGpus&, uint32_t ranks);

/// plans/tuned/<device>.json beside the shipped plans: what `chorale tune` writes when it is not told where.
std::string tuned_file(const TunedFor&);

/// The plans of a table; `file` empty: of tuned_file(), and where there is none the defaults.
/// \throws Failure, UsageError for a file that is no table
TunedPlans tuned_plans(const std::string& file, const TunedFor&);

/// "allreduce_one_shot, ll16".
std::string words_of(const TunedPlans::Choice&);
std::string words_of(const TuneConfig&);

}  // namespace chorale::tools
