#pragma once

#include "chorale/device/endpoints.hpp"
#include "chorale/device/group.hpp"
#include "chorale/types.hpp"
#include "executor/lowering/program.hpp"

namespace chorale::cpu {

/// Does a `coded` step, block of elements by block. Called by all threads of the group.
/// \param memory  the step's places: the sources, then the sinks
void run_coded(const Group& group, const lowering::ProgramStep& step, DType type, const Mem* memory);

}  // namespace chorale::cpu
