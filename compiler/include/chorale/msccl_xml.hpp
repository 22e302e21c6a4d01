#pragma once
/// \file
/// MSCCL algorithms are XML files, often written by synthesisers of collectives. They are imported as plans
/// here. docs/from-msccl.md says what each attribute and each step becomes.

#include <string>
#include <string_view>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/plan.hpp"

namespace chorale {

/// Returns the plan of an algorithm, as a program would record it. Call compile() to prove it and make it
/// ready to run. The author's line of each operation is the line of its `<step>`.
///
/// \param xml  the text, in UTF-8
/// \param file  the name of the file that lines show, without folders
/// \param findings  gets all that is wrong with the file, with its lines; the plan is then empty. The check
///   of a finding is "msccl" if MSCCL could not run the file either, and "import" if MSCCL could but Chorale
///   cannot
/// \param assumed  gets a note for each fact that the file leaves out and that was derived from its steps
Plan import_msccl_xml(std::string_view xml, const std::string& file, Diagnostics& findings,
                      std::vector<Note>* assumed = nullptr);

}  // namespace chorale
