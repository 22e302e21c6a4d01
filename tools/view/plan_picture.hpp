/// \file
/// Makes the picture of a plan of thread blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/packet_form.hpp"
#include "chorale/plan.hpp"
#include "chorale/trace_span.hpp"
#include "chorale/types.hpp"
#include "tools/findings.hpp"
#include "tools/view/picture.hpp"

namespace chorale {
struct Machine;
}

namespace chorale::tools {

/// Says for which call a plan is shown, and what is known about it.
struct PlanView {
  std::string file;  ///< the word of the command line
  uint64_t bytes = 0;
  DType dtype = DType::f32;
  std::optional<PacketForm> packet;  ///< none: packet_form_by_size()
  bool eager = false;
  const Machine* machine = nullptr;  ///< null: nothing is predicted
  std::string trace_file;            ///< the file of `measured`
  std::string trace_backend;         ///< where it was measured, see write_trace()
  std::vector<TraceSpan> measured;   ///< the last launch; empty: none
  std::vector<Explained> findings;
};

/// Returns what an operation spends its time on.
PictureKind picture_kind(const OpInfo&);

/// Makes the picture. A prediction that is not possible becomes a note of the picture.
Picture picture_of(const Plan&, const PlanView&);

/// Returns findings as the page reads them.
/// \param first_op  the number of the first operation of each thread block, by rank
nlohmann::ordered_json findings_json(const Plan&, const std::vector<Explained>&,
                                     const std::vector<std::vector<uint32_t>>& first_op);

}  // namespace chorale::tools
