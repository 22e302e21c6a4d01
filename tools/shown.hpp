/// \file
/// Writes the parts of a plan in words, as `chorale show` prints them.
#pragma once

#include <ostream>

#include "chorale/plan.hpp"

namespace chorale::tools {

/// Writes what holds for all ranks: the collective, its messages and its scratch.
void show_plan(const Plan&, std::ostream& to);
/// Writes a rank's buffers, channels and semaphores.
void show_rank(const Gpu&, std::ostream& to);
/// Writes the operations of a thread block, with their authors' lines.
void show_block(const Plan&, const Gpu&, const ThreadBlock&, std::ostream& to);

}  // namespace chorale::tools
