#pragma once
/// \file
/// Imports algorithms of MSCCL, the XML files that synthesisers of collectives write, as plans.
/// docs/from-msccl.md says what each attribute and each step becomes.

#include <string>
#include <string_view>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/plan.hpp"

namespace chorale {

/// Returns the plan that does what an algorithm says, as a program records one. compile() makes it ready to
/// run, and proves it. Each operation has the line of its <step> as its author's line.
///
/// \param xml  the text, in UTF-8
/// \param file  the name of the text in lines, without folders
/// \param findings  gets all that is wrong with the file, at its lines; the plan is then empty. The check of
///   a finding is "msccl" if MSCCL could not run the file, either, and "import" if it could, and we do not
///   read it
/// \param assumed  gets a note for each thing that the file leaves out and its steps have decided
Plan import_msccl_xml(std::string_view xml, const std::string& file, Diagnostics& findings,
                      std::vector<Note>* assumed = nullptr);

}  // namespace chorale
