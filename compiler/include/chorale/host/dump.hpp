#pragma once
/// \file
/// Writes host schedules in words. The grammar is in docs/host-schedules.md.

#include <cstdint>
#include <string>
#include <string_view>

#include "chorale/host/concrete.hpp"

namespace chorale::host {

/// Writes a schedule before lowering: the tensors and what is computed of them as a whole.
std::string dump_layout(std::string_view name, const Schedule&);
/// Writes what lanes do, one statement per line.
std::string dump(std::string_view name, const Schedule&);
/// Writes what one rank does: unrolled, and after expand_movers() with flags.
std::string dump(std::string_view name, const Concrete&, uint32_t rank);

}  // namespace chorale::host
