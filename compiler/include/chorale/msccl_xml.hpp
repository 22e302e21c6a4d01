#pragma once
/// \file
/// import_msccl_xml() makes plans of MSCCL algorithms, which are XML files that synthesisers of collectives
/// often write. docs/from-msccl.md says what each attribute and each step becomes. export_msccl_xml() is the
/// way back; docs/interchange.md says which plans it takes.

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
/// \param findings  gets everything that is wrong with the file, with its lines. If there are findings, the
///   plan is empty. Diagnostic::check is "msccl" if MSCCL could not run the file either, and "import" if only
///   Chorale cannot run it
/// \param assumed  gets a note for each fact that the file leaves out and that its steps imply; may be null
Plan import_msccl_xml(std::string_view xml, const std::string& file, Diagnostics& findings,
                      std::vector<Note>* assumed = nullptr);

/// Returns the text of the MSCCL algorithm that does what a plan does. Import and prove it before you trust
/// it: signals that carry no data are left out, because the connections of MSCCL have their own.
///
/// \param plan  without findings of check()
/// \param findings  gets everything that MSCCL has no step, no attribute or no word for, with the operations.
///   If there are findings, the text is empty. Diagnostic::check is "export"
std::string export_msccl_xml(const Plan& plan, Diagnostics& findings);

}  // namespace chorale
