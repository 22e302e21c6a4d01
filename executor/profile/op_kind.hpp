/// \file
/// These functions tell what an operation spends its time on.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "chorale/plan.hpp"

namespace chorale::profile_of {

inline bool has_any(const OpInfo& op, std::initializer_list<Role> roles) {
  return std::any_of(roles.begin(), roles.end(), [&](Role role) { return op.has(role); });
}

inline bool moves_data(const OpInfo& op) {
  return std::any_of(op.fields.begin(), op.fields.end(),
                     [](const Field& field) { return is_operand(field.role); });
}

/// Returns whether an operation waits and moves nothing.
inline bool only_waits(const OpInfo& op) {
  return !moves_data(op) &&
         has_any(op, {Role::Await, Role::AwaitRelaxed, Role::Acquire, Role::Arrive, Role::Drain});
}

}  // namespace chorale::profile_of
