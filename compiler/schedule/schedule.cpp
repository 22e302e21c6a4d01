#include "chorale/schedule/schedule.hpp"

#include <algorithm>

namespace chorale::schedule {
uint32_t Schedule::find_tensor(std::string_view name) const {
  uint32_t position = 0;
  while (position < tensors.size() && tensors[position].name != name) ++position;
  return position;
}

const Function* Schedule::find_function(std::string_view name) const {
  const auto found =
      std::find_if(functions.begin(), functions.end(), [&](const Function& one) { return one.name == name; });
  return found == functions.end() ? nullptr : &*found;
}

}  // namespace chorale::schedule
