#include "switch_alias.hpp"

#include <algorithm>

#include "chorale/device/vec.hpp"

namespace chorale::lowering {

char* SwitchAliases::find(char* const* members, uint32_t n, uint64_t offset) const {
  for (const SwitchAlias& alias : all) {
    if (alias.members.size() != n) continue;
    uint64_t at = 0;
    bool alike = true;
    for (uint32_t member = 0; member < n; ++member) {
      const ProgramPlace place{reinterpret_cast<uint64_t>(members[member]) + offset};
      const uint64_t inside = reinterpret_cast<uint64_t>(place.settled(1, in, out)) -
                              reinterpret_cast<uint64_t>(alias.members[member]);
      if (member == 0) at = inside;
      alike = alike && inside == at && inside < alias.bytes;
    }
    if (alike) return alias.at + at;
  }
  return nullptr;
}

UnitsWithin units_within(uint64_t bytes, const ProgramPlace& from, const ProgramPlace& to) {
  const uint64_t before = (unit_bytes - from.at % unit_bytes) % unit_bytes;
  if ((to.at + before) % unit_bytes != 0) return {};
  const uint64_t exist = std::min({bytes, from.valid, to.valid});
  if (exist < before + unit_bytes) return {};
  return {before, (exist - before) / unit_bytes * unit_bytes};
}

}  // namespace chorale::lowering
