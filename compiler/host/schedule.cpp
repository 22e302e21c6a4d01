// This file holds the op table of host schedules.

#include "chorale/host/schedule.hpp"

#include <algorithm>

namespace chorale::host {
namespace {

#define FIELD(name) Field::name,
#define CHORALE_HOST_OP(name, word, summary, fields) constexpr Field name##_fields[] = {fields};
#include "chorale/host/ops.def"
#undef FIELD

constexpr OpInfo table[] = {
#define CHORALE_HOST_OP(name, word, summary, fields) {word, summary, name##_fields},
#include "chorale/host/ops.def"
};

}  // namespace

const OpInfo& info(OpKind kind) { return table[size_t(kind)]; }
std::span<const OpInfo> op_table() { return table; }

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

}  // namespace chorale::host
