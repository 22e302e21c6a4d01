// This file reads and writes host schedules in plan files by the rows of their parts. Unknown keys are
// refused, because a schedule that is only partly understood cannot be run.

#include "json.hpp"

#include "codecs.hpp"

namespace chorale::schedule {

Schedule read_schedule(const json::Node& node) {
  Schedule schedule;
  json::Fields fields(node);
  const std::span<const Row<Schedule>> all = rows<Schedule>();
  read_rows(schedule, fields, all.last(1), schedule);  // "source" first: the others refer to it
  read_rows(schedule, fields, all.first(all.size() - 1), schedule);
  refuse_others(fields, all);
  return schedule;
}

void write_schedule(std::string& out, const Schedule& schedule, const std::string& indent) {
  const Writer to{schedule, "\n" + indent + "  "};
  const std::string members = write_rows(to, rows<Schedule>(), schedule, "," + to.indent + "\"", "\": ");
  json::put(out, "{", members.substr(1), "\n", indent, "}");
}

}  // namespace chorale::schedule
