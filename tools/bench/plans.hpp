/// \file
/// The plans that `chorale bench` times: named one by one, or all that are shipped for a collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "chorale/plan.hpp"
#include "tools/programs.hpp"

namespace chorale::tools {

struct NamedPlan {
  std::string name;  ///< of the file without the number of ranks, or of the program
  Plan plan;
  bool also_in_place = false;  ///< the algorithm of the plan before it, in place
};

/// How many of them differ by name or content; those that are also in place are counted with the ones before
/// them.
size_t count_distinct(std::span<const NamedPlan> plans);

/// Of the shipped plans: beside the installed command, or in the tree that it was built from.
/// \throws Failure if there is none
std::string shipped_folder();

/// The names that stand for all shipped plans of a collective.
std::span<const std::string> collective_words();
bool names_collective(const std::string& what);

/// The shipped plans of a collective, checked, by name; for a number of ranks that none is shipped for the
/// same plans, made here. \throws Failure if there are none
std::vector<NamedPlan> shipped_plans(const std::string& collective, uint32_t ranks);

/// The plans of every word, for one number of ranks. Where an algorithm can also be had in place, that plan
/// follows it under the same name.
/// \param allow  proofs to leave out
/// \param command  what messages call the one that asks
/// \param ranks  0: those of the first plan; a collective's name needs it
std::vector<NamedPlan> find_plans(const std::vector<std::string>& words, const Wanted& common, uint32_t ranks,
                                  const std::vector<std::string>& allow,
                                  const char* command = "chorale bench");

}  // namespace chorale::tools
