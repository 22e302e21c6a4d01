/// \file
/// Finds the plans that `chorale bench` times: plans that are named one by one, or all that are shipped for a
/// collective. Also finds what is shipped with them: host schedules, and the file of a machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "chorale/machine.hpp"
#include "chorale/plan.hpp"
#include "tools/programs.hpp"

// The file includes no CLI11, see command.hpp.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace chorale::tools {

struct NamedPlan {
  /// The file's name without the number of ranks, or the program's name. find_plans() may choose a longer
  /// one.
  std::string name;
  Plan plan;
  bool also_in_place = false;  ///< true if it is the algorithm of the previous plan, in place
  /// True if a collective was named, and this is one of its shipped plans.
  bool of_collective = false;
};

/// Counts the plans that differ by name or content. It counts a plan that is `also_in_place` together with
/// the previous one.
size_t count_distinct(std::span<const NamedPlan> plans);

/// Returns the folder of the shipped plans: beside the installed command, or in the tree from which it was
/// built.
/// \throws Failure if there is none
std::string shipped_folder();

/// Returns the names of the JSON files in a folder, without ".json", sorted; none if there is no folder.
std::vector<std::string> names_in(const std::string& folder);

/// Returns the names of the shipped host schedules, sorted; none if there are no plans.
std::vector<std::string> shipped_schedules();
/// Returns the file of the schedule of that name; "" if none is shipped.
std::string shipped_schedule(const std::string& name);

/// Return the words that bench and run take for what is shipped: algorithms and collectives, and for run also
/// host schedules.
std::vector<std::string> names_to_time();
std::vector<std::string> names_to_run();

/// Returns the names that stand for all shipped plans of a collective.
std::span<const std::string> collective_words();
bool names_collective(const std::string& what);

/// Refuses a collective where one plan is needed.
/// \throws Failure command_wrong
void refuse_collective(const std::string& what);

/// Returns the shipped plans of a collective that do not encode, checked and ordered by name. If none is
/// shipped for this number of ranks, it makes them.
/// \throws Failure if there are none
std::vector<NamedPlan> shipped_plans(const std::string& collective, uint32_t ranks);

/// Finds the plans of every word, for one number of ranks. If an algorithm can also run in place, that plan
/// follows under the same name. Plans of two words have different names: z.json and z_8.json are "z" and
/// "z_8".
/// \param allow  the proofs to leave out
/// \param command  the name of the command in messages
/// \param ranks  the number of ranks; 0: the number of the first plan. A collective's name needs one
std::vector<NamedPlan> find_plans(const std::vector<std::string>& words, const Wanted& common, uint32_t ranks,
                                  const std::vector<std::string>& allow,
                                  const char* command = "chorale bench");

/// Leaves out the shipped plans of collectives that have more than `most` thread blocks. Plans that are named
/// stay.
/// \throws Failure command_wrong if no plan is left
void keep_within(std::vector<NamedPlan>& plans, uint32_t most);

/// Reads a machine's file.
/// \param file  the file; empty: the NVIDIA H200's, beside the shipped plans
/// \param topology  replaces that of the file: the name of a shipped one, or a file; empty: does not
/// \throws Failure command_wrong
Machine machine_of(const std::string& file, const std::string& topology = "");

/// Declares --topology, whose value is for machine_of().
CLI::Option* declare_topology(CLI::App&, std::string& value, const std::string& what);

}  // namespace chorale::tools
