/// \file
/// What is wrong with a plan, told to people and to other programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/witness.hpp"
#include "tools/command.hpp"
#include "tools/sarif.hpp"

namespace chorale::tools {

struct Explained {
  Diagnostic diagnostic;
  std::optional<Finding> finding;  ///< of a proof
  Witness witness;                 ///< of that
};

/// \param diagnostics  of check_plan() or build_program()
std::vector<Explained> explain_all(const Plan&, const Diagnostics& diagnostics);

/// Prints the findings to stderr. True if there were any.
bool report(const Plan&, const Diagnostics&);

/// How a plan in which only proofs have found something is run all the same; empty for other findings.
std::string allowing(const Diagnostics&);

/// Tells findings in every way that was asked for.
class Telling {
 public:
  /// --sarif, --witness, --shrink and --schedules.
  void declare(CLI::App&);

  /// \param path  of the plan file or the program
  /// \param run   how `chorale run` is told of the plan: "plan.json", "mine.cpp --set ranks=4"
  bool tell(const Plan&, const std::string& path, const std::string& run, const Diagnostics&);
  /// Tells what is right, but not what its author wants.
  void warn(const Plan&, const std::string& path, const Diagnostics&);
  /// Writes what was told to files. \throws Failure command_wrong if one cannot be written
  void finish() const;

  /// What is written.
  std::vector<NamedFile> files() const {
    return {{"--sarif", sarif_file_}, {"--witness", witness_file_}, {"--shrink", shrunk_file_}};
  }

  /// Whether --shrink is there.
  bool shrinks() const { return !shrunk_file_.empty(); }

 private:
  void tell_shrunk(const Plan&, const std::vector<Explained>&) const;
  void tell_seed(const Plan&, const std::string& run, const std::vector<Explained>&) const;

  std::string sarif_file_, witness_file_, shrunk_file_;
  uint64_t schedules_ = 100;
  Sarif sarif_;
  std::string trace_;
};

/// A word as a shell takes it.
std::string shell_word(const std::string&);

}  // namespace chorale::tools
