/// \file
/// Reports the findings in a plan to people and to other programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/dsl/registry.hpp"
#include "chorale/witness.hpp"
#include "tools/command.hpp"
#include "tools/sarif.hpp"

namespace chorale::tools {

struct Explained {
  Diagnostic diagnostic;
  std::optional<Finding> finding;  ///< the finding of a proof
  Witness witness;                 ///< the finding's witness
};

/// Finds the finding and the witness of each diagnostic that a proof has made.
/// \param diagnostics  the result of check_plan() or build_program()
std::vector<Explained> explain_all(const Plan&, const Diagnostics& diagnostics);

/// Prints the findings to stderr. Returns true if there were any.
bool report(const Plan&, const Diagnostics&);

/// Returns the help for a plan with findings. If only proofs have found something, it is the option that
/// makes the command run the plan anyway. Else it is empty, or says why the check in `allow` was not left
/// out.
std::string allowing(const Diagnostics&, const std::vector<std::string>& allow);

/// Reports findings in every form that the command line asks for.
class Telling {
 public:
  /// Declares --sarif, --witness, --shrink and --schedules.
  void declare(CLI::App&);

  /// Reports findings as errors. Returns true if there were any.
  /// \param path  the path of the plan file or the program
  /// \param run   the arguments of `chorale run` for the plan: "plan.json", "mine.cpp --set ranks=4"
  /// \param allow  the proofs and checks that the user leaves out
  /// \param told  if not null, receives the findings with their counter-examples
  bool tell(const Plan&, const std::string& path, const std::string& run, const Diagnostics&,
            const std::vector<std::string>& allow, std::vector<Explained>* told = nullptr);
  /// Reports warnings: the plan is right, but probably not what its author wants.
  void warn(const Plan&, const std::string& path, const Diagnostics&);
  /// Writes the reports to files.
  /// \throws Failure command_wrong if one cannot be written
  void finish() const;

  /// Returns the files that finish() writes.
  std::vector<NamedFile> files() const {
    return {{"--sarif", sarif_file_}, {"--witness", witness_file_}, {"--shrink", shrunk_file_}};
  }

  /// Returns true if --shrink is given.
  bool shrinks() const { return !shrunk_file_.empty(); }

 private:
  void tell_shrunk(const Plan&, const std::vector<Explained>&) const;
  void tell_seed(const Plan&, const std::string& run, const std::vector<Explained>&) const;

  std::string sarif_file_, witness_file_, shrunk_file_;
  uint64_t schedules_ = 100;
  Sarif sarif_;
  std::string trace_;
};

/// Returns the words that name a plan, or a program with its settings, on the command line of `chorale run`.
std::string words_to_run(const std::string& what, const std::string& name,
                         const dsl::Parameters::Settings& settings);

}  // namespace chorale::tools
