#pragma once
/// \file
/// keep_thread_order() keeps the order of operations that single threads of a block do.

#include <vector>

#include "chorale/plan.hpp"

namespace chorale {

/// Asks for a fence (Op::sync) where joined operations need one to keep the order that they had before.
void keep_thread_order(const ThreadBlock&, std::vector<Op>&);

}  // namespace chorale
