#pragma once
/// \file
/// dump() returns a host schedule as readable text. docs/host-schedules.md has the grammar.

#include <cstdint>
#include <string>
#include <string_view>

#include "chorale/schedule/concrete.hpp"

namespace chorale::schedule {

/// Returns the text of a schedule before lowering: its tensors, and the operations on whole tensors.
std::string dump_layout(std::string_view name, const Schedule&);
/// Returns the text of the operations of all streams, one statement per line.
std::string dump(std::string_view name, const Schedule&);
/// Returns the text of one rank's steps, unrolled. After expand_movers() it has the flags too.
std::string dump(std::string_view name, const Concrete&, uint32_t rank);

}  // namespace chorale::schedule
