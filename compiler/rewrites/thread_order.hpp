#pragma once
/// \file
/// The order of what single threads of a block do.

#include <vector>

#include "chorale/plan.hpp"

namespace chorale {

/// Asks for a fence (Op::sync) wherever joined operations need one to keep the order of before.
void keep_thread_order(const ThreadBlock&, std::vector<Op>&);

}  // namespace chorale
