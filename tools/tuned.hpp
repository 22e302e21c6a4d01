/// \file
/// Tables of the tuner, as commands use them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chorale/config.hpp"
#include "chorale/tuned_plans.hpp"
#include "tools/rank_gpus.hpp"

namespace chorale::tools {

/// This machine, as a table knows it.
TunedFor tuned_for(const Config&, const RankGpus&, uint32_t ranks);

/// plans/tuned/<device>.json beside the shipped plans: what `chorale tune` writes when it is not told where.
std::string tuned_file(const TunedFor&);

/// What makes a table of these collectives here, as a shell takes it: "chorale tune allreduce --ranks 2".
/// \param file  of the table; "": that of tuned_file()
std::string tune_command(const std::vector<std::string>& collectives, const TunedFor&, DType,
                         const std::string& file);

/// The plans of a table; `file` empty: of tuned_file(), and where there is none the defaults.
/// \param advice  what a file that is missing is made by: tune_command()
/// \throws Failure for a file that is missing, UsageError for one that is no table
TunedPlans tuned_plans(const std::string& file, const TunedFor&, const std::string& advice);

/// "allreduce_one_shot, ll16".
std::string words_of(const TunedPlans::Choice&);
std::string words_of(const TuneConfig&);

}  // namespace chorale::tools
