#pragma once
/// \file
/// Makes mutants of plans and finds their fates.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sites.hpp"

namespace chorale::mutation {

enum class Fate : uint8_t {
  killed,    ///< a check reports it
  survived,  ///< no check reports it and no schedule fails: `by` says why it is right
  hole,      ///< no check reports it, but a schedule fails: the checks are wrong
  crashed,   ///< a judge threw an exception
};

/// Names the fates, by Fate, as in the lines of a run.
inline constexpr std::string_view fate_names[] = {"killed", "survived", "hole", "crashed"};

/// Describes a mutant and its fate.
struct Mutant {
  const Operator* of = nullptr;
  OpPlace at;
  bool of_operation = true;  ///< as Site::of_operation
  SourceLine line;           ///< the author's line of the operation
  std::string what;          ///< as Site::what
  Fate fate = Fate::survived;
  std::string by;     ///< killed: the check; survived: the reason in a word or two
  std::string text;   ///< the check's finding, or the full reason
  uint64_t seed = 0;  ///< hole: the schedule's seed
};

/// Describes a schedule that failed.
struct Failed {
  uint64_t seed;
  std::string text;
};

/// Describes the reason why a mutant is right.
struct Reason {
  std::string by, text;
};

/// Holds the functions that judge mutants. Several threads call them at once.
struct Judge {
  std::function<Diagnostics(const Plan&)> check;
  std::function<std::optional<Failed>(const Plan&)> run;  ///< the first schedule that fails
  std::function<Reason(const Plan& original, const Plan& mutant, const Mutant&)> explain;
};

struct Choice {
  std::vector<const Operator*> operators;
  uint32_t sample = 0;  ///< the largest number of an operator's sites in a plan; 0: all
  uint64_t seed = 1;    ///< the seed of the choice
  uint32_t threads = 1;
  /// Fills in the fate of a mutant that was judged before. Several threads call it at once.
  std::function<bool(Mutant&)> recall = {};
};

/// Makes and judges the mutants of a plan that differ from it and from each other. After judging a mutant it
/// calls `progress` with the mutant and its plan, one at a time. It does not call it for mutants that were
/// judged before. The plan itself must be right.
std::vector<Mutant> mutate(const Plan&, const Choice&, const Judge&,
                           const std::function<void(const Mutant&, const Plan&)>& progress = {});

}  // namespace chorale::mutation
