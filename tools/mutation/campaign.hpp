#pragma once
/// \file
/// Mutants of plans, and what becomes of them.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sites.hpp"

namespace chorale::mutation {

enum class Fate : uint8_t {
  killed,    ///< a check finds it
  survived,  ///< no check does, nor does any schedule fail: `by` says why it is right
  hole,      ///< no check finds it, and a schedule fails: the checks are wrong
  crashed,   ///< what should have judged it threw an exception
};

/// By Fate, as in the lines of a run.
inline constexpr std::string_view fate_names[] = {"killed", "survived", "hole", "crashed"};

/// A mutant and its fate.
struct Mutant {
  const Operator* of = nullptr;
  OpPlace at;
  bool of_operation = true;  ///< as Site::of_operation
  SourceLine line;           ///< the author's, of the operation
  std::string what;          ///< as Site::what
  Fate fate = Fate::survived;
  std::string by;     ///< killed: the check; survived: the reason, in a word or two
  std::string text;   ///< its finding, or the reason at length
  uint64_t seed = 0;  ///< hole: of the schedule
};

/// A schedule that failed.
struct Failed {
  uint64_t seed;
  std::string text;
};

/// Why a mutant is right.
struct Reason {
  std::string by, text;
};

/// Who judges mutants. Called by several threads at once.
struct Judge {
  std::function<Diagnostics(const Plan&)> check;
  std::function<std::optional<Failed>(const Plan&)> run;  ///< the first schedule that fails
  std::function<Reason(const Plan& original, const Plan& mutant, const Mutant&)> explain;
};

struct Choice {
  std::vector<const Operator*> operators;
  uint32_t sample = 0;  ///< of the sites of an operator in a plan, at most so many; 0: all
  uint64_t seed = 1;    ///< of the choice
  uint32_t threads = 1;
  /// Fills in what became of a mutant that was judged before. Called by several threads at once.
  std::function<bool(Mutant&)> recall = {};
};

/// The mutants of a plan that are plans of their own: neither equal to it nor to each other. `progress` gets
/// each as it has been judged, and its plan, one at a time, but not those that were judged before. The plan
/// is right to begin with.
std::vector<Mutant> mutate(const Plan&, const Choice&, const Judge&,
                           const std::function<void(const Mutant&, const Plan&)>& progress = {});

}  // namespace chorale::mutation
