/// \file
/// Finds and reads the tuner's tables for commands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chorale/config.hpp"
#include "chorale/tuned_plans.hpp"
#include "tools/rank_gpus.hpp"

namespace chorale::tools {

/// Describes this machine in the form that a table uses.
TunedFor tuned_for(const Config&, const RankGpus&, uint32_t ranks);

/// Returns plans/tuned/<device>.json beside the shipped plans, which `chorale tune` writes by default.
std::string tuned_file(const TunedFor&);

/// Returns the command that makes a table of these collectives on this machine: "chorale tune allreduce
/// --ranks 2".
/// \param file  the table's file; "": the file of tuned_file()
std::string tune_command(const std::vector<std::string>& collectives, const TunedFor&, DType,
                         const std::string& file);

/// Reads the plans of a table. If `file` is empty, it reads tuned_file(), or takes the defaults if that is
/// missing.
/// \param advice  the command that makes a missing file: tune_command()
/// \throws Failure for a missing file, UsageError for a file that is not a table
TunedPlans tuned_plans(const std::string& file, const TunedFor&, const std::string& advice);

/// Return "allreduce_one_shot, ll16".
std::string words_of(const TunedPlans::Choice&);
std::string words_of(const TuneConfig&);

}  // namespace chorale::tools
