#include "chorale/schedule/dump.hpp"

#include <fmt/format.h>

#include "codecs.hpp"

namespace chorale::schedule {

void Dump::operations(const std::vector<Op>& ops) {
  for (const Op& op : ops) {
    selected.clear();
    std::string_view text = info(op.kind).text;
    if (rows(op.kind)[0].key == "lane" && text.find("{lane}") == text.npos) set_stream(op.stream);
    // A line may stand for a body. Each body begins on the stream of the operation. If a body has changed the
    // stream, the stream after it depends on the rank.
    const std::string before = stream;
    bool is_changed = false;
    while (!text.empty()) {
      stream = before;
      const std::string words = filled(take(text, '\n'), op);
      if (!words.empty()) line(words);
      is_changed |= stream != before;
    }
    if (is_changed) stream.clear();
  }
}

void Dump::set_stream(const Stream& next) {
  const std::string name = codec::OneStream::text(*this, next);
  if (name != stream) line(fmt::format("SetStream({})", name));
  stream = name;
}

std::string Dump::filled(std::string_view text, const Op& op) {
  std::string out;
  while (!text.empty()) {
    out += take(text, '{');
    std::string values;
    for (std::string_view keys = take(text, '}'); !keys.empty();) {
      const std::string_view key = take(keys, ',');
      const std::string value =
          key == next_number ? fmt::format("#{}", ++numbers) : find(rows(op.kind), key)->text(*this, op);
      if (!values.empty() && !value.empty()) values += ", ";
      values += value;
    }
    out += values;
  }
  return out;
}

namespace {

std::string signature(Dump& dump, Role role) {
  std::string list;
  for (const Tensor& tensor : dump.schedule.tensors)
    if (tensor.role == role) list += (list.empty() ? "" : ", ") + codec::declaration(dump, tensor);
  return list;
}

/// Returns the line before the statements.
std::string head(Dump& dump, std::string_view name) {
  const Schedule& schedule = dump.schedule;
  std::string out = fmt::format("%HostProgram {} {{ ranks=D", name);
  if (schedule.pool != Expr{}) out += " streams=" + codec::Number::text(dump, schedule.pool);
  for (const auto& [key, value] : schedule.made_with) out += fmt::format(" {}={}", key, value);
  return out + fmt::format(" }} ({}) -> ({}) :\n", signature(dump, Role::in), signature(dump, Role::out));
}

std::string boxes(const Concrete& made, const std::vector<Box>& list) {
  std::string all;
  for (const Box& box : list) all += (all.empty() ? "" : ", ") + text(made, box);
  return all;
}

/// Returns what a step does, without its stream.
std::string what(const Concrete& made, const Step& step) {
  const std::string name(step_names[size_t(step.kind)]);
  switch (step.kind) {
    case StepKind::after: {
      std::string streams;
      for (const uint32_t stream : step.streams)
        streams += (streams.empty() ? "" : ", ") + made.streams[stream];
      return fmt::format("after {}{}", streams, step.token ? fmt::format(" up to mark {}", step.token) : "");
    }
    case StepKind::post:
    case StepKind::take:
      return fmt::format("{} {} {} rank {}", name, made.flags[step.flag].name,
                         step.kind == StepKind::post ? "at" : "from", step.peer);
    case StepKind::put:
      return fmt::format("put {} = {} at rank {}", text(made, step.writes[0]), text(made, step.reads[0]),
                         step.peer);
    case StepKind::get:
      return fmt::format("get {} = {} of rank {}", text(made, step.writes[0]), text(made, step.reads[0]),
                         step.peer);
    case StepKind::group:
    case StepKind::exchange: {
      if (!step.name.empty()) return "end of " + step.name;
      std::string list;
      for (const ConcreteTransfer& one : step.transfers)
        list += fmt::format("{}{} {} {} rank {} via {}", list.empty() ? "" : ", ",
                            one.is_send ? "send" : "recv", text(made, one.box), one.is_send ? "to" : "from",
                            one.peer, mover_names[size_t(one.mover)]);
      return fmt::format("{} {{ {} }}", name, list);
    }
    case StepKind::wait:
      return fmt::format("wait for step {}", step.token);
    case StepKind::mark:
      return "mark " + (step.token ? fmt::to_string(step.token) : codec::in_quotes(step.name));
    case StepKind::fill:
      return fmt::format("fill {} = {}", text(made, step.writes[0]), step.value);
    default:
      return fmt::format("{}{}{} {} = {}", name, step.name.empty() ? "" : " ", step.name,
                         boxes(made, step.writes), boxes(made, step.reads));
  }
}

}  // namespace

std::string dump_layout(std::string_view name, const Schedule& schedule) {
  Dump dump{schedule};
  dump.out = head(dump, name);
  dump.operations(schedule.layout);
  return dump.out + "} // %HostProgram\n";
}

std::string dump(std::string_view name, const Schedule& schedule) {
  Dump dump{schedule};
  dump.out = head(dump, name);
  // Results are declared first, outside all loops. Temporaries are declared where the author has put them.
  for (const Tensor& tensor : schedule.tensors)
    if (tensor.role == Role::out) dump.line(codec::allocation(dump, tensor));
  dump.line("%main = CurrentStream()");
  dump.operations(schedule.body);
  return dump.out + "} // %HostProgram\n";
}

std::string dump(std::string_view name, const Concrete& made, uint32_t rank) {
  std::string out = fmt::format("{} on rank {} of {}\n", name, rank, made.ranks);
  const std::vector<Step>& steps = made.steps[rank];
  for (size_t k = 0; k < steps.size(); ++k)
    out += fmt::format("  {:>4} {:<8} {}\n", k, made.streams[steps[k].stream],
                       steps[k].kind == StepKind::barrier ? "barrier" : what(made, steps[k]));
  return out;
}

}  // namespace chorale::schedule
