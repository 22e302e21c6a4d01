/// \file
/// Turns profiles into JSON that the page reads.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "chorale/comparison.hpp"
#include "chorale/profile.hpp"

namespace chorale::tools {

nlohmann::ordered_json profile_json(const Profile&);
nlohmann::ordered_json comparison_json(const Comparison&);

}  // namespace chorale::tools
