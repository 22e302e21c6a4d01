#pragma once
/// \file
/// A host schedule is written here as readable text. docs/host-schedules.md has the grammar.

#include <cstdint>
#include <string>
#include <string_view>

#include "chorale/schedule/concrete.hpp"

namespace chorale::schedule {

/// Writes a schedule before lowering: its tensors, and the operations on whole tensors.
std::string dump_layout(std::string_view name, const Schedule&);
/// Writes the operations of all streams, one statement per line.
std::string dump(std::string_view name, const Schedule&);
/// Writes the steps of one rank. They are unrolled, and have flags after expand_movers().
std::string dump(std::string_view name, const Concrete&, uint32_t rank);

}  // namespace chorale::schedule
