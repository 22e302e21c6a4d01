#include "tools/interchange.hpp"

#include <stdexcept>

#include "chorale/compile.hpp"
#include "chorale/msccl_xml.hpp"
#include "tools/command.hpp"
#include "tools/findings.hpp"

namespace chorale::tools {

std::string msccl_text(const Plan& plan) {
  Diagnostics findings;
  const std::string text = export_msccl_xml(plan, findings);
  if (report(plan, findings))
    throw Failure(Exit::plan_wrong, "MSCCL cannot express plan '" + plan.name + "'");
  Plan imported = import_msccl_xml(text, "algorithm.xml", findings);
  if (findings.empty()) findings = chorale::compile(imported);
  if (report(imported, findings)) {
    throw Failure(Exit::plan_wrong, "the algorithm that MSCCL would run is not right",
                  "signals that carry no data are left out, and this plan needs some of them");
  }
  return text;
}

void write_chakra_files(const MessageGraph& graph, const std::string& prefix) {
  for (uint32_t rank = 0; rank < graph.ranks.size(); ++rank)
    write_output(prefix + "." + std::to_string(rank) + ".et", write_chakra(graph, rank));
}

}  // namespace chorale::tools
