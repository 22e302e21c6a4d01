#include "dsl/schedule_recording.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "chorale/schedule/names.hpp"

namespace chorale::dsl {

ScheduleRecording::ScheduleRecording(ScheduleOptions options)
    : name(std::move(options.name)), lowering(options.lowering) {
  s.ranks = std::move(options.ranks);
  s.pool = s.exprs.constant(options.pool);
}

uint32_t ScheduleRecording::place(Here at) {
  const SourceLine line = authors_line(at);
  if (!line.line) return 0;
  const auto known = std::find(s.source.begin(), s.source.end(), line);
  const uint32_t position = uint32_t(known - s.source.begin());
  if (known == s.source.end()) s.source.push_back(line);
  return position + 1;
}

void ScheduleRecording::find(Here at, std::string text) {
  const SourceLine line = authors_line(at);
  const auto same = [&](const Diagnostic& known) { return known.line == line && known.text == text; };
  if (std::none_of(findings.begin(), findings.end(), same))
    findings.push_back({"dsl",
                        line,
                        {},
                        std::move(text),
                        line.line ? std::vector<Note>() : std::vector{library_note()},
                        {}});
}

void ScheduleRecording::name_of(std::string_view what, std::string_view name, Here at) {
  if (!schedule::is_word(name)) find(at, say(what, " '", name, "', expected ", schedule::a_word));
}

schedule::Expr ScheduleRecording::expr(const Index& index, Here at) {
  if (!index.recording_) return s.exprs.constant(index.value_);
  if (index.mixed_) find(at, "an index made of parts of two schedules");
  if (index.mixed_ || !is_own(index, "an index", at)) return {};
  const Size size = size_of(index.expr_);
  if (size.nested > schedule::most_nested || size.operators > schedule::most_operators) {
    find(at, say("an expression of ", size.operators, " operators, nested ", size.nested,
                 " deep, expected at most ", schedule::most_operators, " and ", schedule::most_nested));
    return {};
  }
  return index.expr_;
}

Index ScheduleRecording::apply(schedule::ExprKind kind, const Index& left, const Index& right) {
  ScheduleRecording* const recording = left.recording_ ? left.recording_ : right.recording_;
  if (recording) {
    // Operators do not know the author's line, so the call that uses the result reports the finding.
    Index result = recording->index({});
    result.mixed_ = left.mixed_ || right.mixed_ || (right.recording_ && right.recording_ != recording);
    if (!result.mixed_) result.expr_ = recording->binary(kind, left, right);
    return result;
  }
  schedule::Exprs numbers;  // for an operator on two numbers
  const schedule::Evaluated value = schedule::evaluate(
      numbers, numbers.binary(kind, numbers.constant(left.value_), numbers.constant(right.value_)), {});
  if (!value) throw std::invalid_argument("an index " + value.problem);
  return Index(value.value);
}

View ScheduleRecording::part(const View& of, uint8_t axis, Index first, const Index* length, Here at) {
  View view = of;
  auto& selects = view.view_.selects;
  const auto behind = std::find_if(selects.begin(), selects.end(),
                                   [&](const schedule::Select& one) { return one.axis >= axis; });
  const schedule::Tensor& tensor = s.tensors[of.view_.tensor];
  if (axis >= tensor.axes.size()) {
    find(at, say("axis ", int(axis), " of '", tensor.name, "', which has ", tensor.axes.size(), " axes"));
  } else if (behind != selects.end() && behind->axis == axis) {
    find(at, say("axis ", int(axis), " of '", tensor.name,
                 "' is selected or sliced twice: name its part in one step"));
  } else {
    schedule::Select select{.axis = axis, .lo = expr(first, at), .len = {}};
    if (length) select.len = expr(*length, at);
    selects.insert(behind, select);
  }
  return view;
}

Tensor ScheduleRecording::tensor(std::string_view name, DType dtype, const std::vector<Extent>& axes,
                                 schedule::Role role, bool zero, Here at) {
  name_of("a tensor", name, at);
  unique(s.tensors, "tensor", name, at);
  schedule::Tensor made{.name = std::string(name),
                        .dtype = dtype,
                        .axes = {},
                        .role = role,
                        .space = schedule::Space::local,
                        .zero = zero,
                        .at = place(at)};
  for (const Extent& axis : axes) made.axes.push_back({expr(axis.extent, at), axis.tag});
  s.tensors.push_back(std::move(made));
  return {this, schedule::View{uint32_t(s.tensors.size() - 1), {}}};
}

schedule::Op& ScheduleRecording::op(schedule::OpKind kind, const schedule::Stream& stream, Here at) {
  schedule::Op& op = open.back()->emplace_back();
  op.kind = kind;
  op.stream = stream;
  op.at = place(at);
  return op;
}

schedule::Op& ScheduleRecording::compute(std::string_view function, const Tensor& out,
                                         const std::vector<Tensor>& in, Here at) {
  if (open.size() > 1)
    find(at, say("'", function, "' works on whole tensors and cannot be in a loop or condition"));
  schedule::Op& op = s.layout.emplace_back();
  op.kind = schedule::OpKind::compute;
  op.name = function;
  op.writes = {raw(out, at)};
  for (const Tensor& one : in) op.reads.push_back(raw(one, at));
  op.at = place(at);
  return op;
}

ScheduleRecording::Inside::Inside(ScheduleRecording& recording, std::vector<schedule::Op>& body)
    : open_(recording.open) {
  open_.push_back(&body);
}
ScheduleRecording::Inside::~Inside() { open_.pop_back(); }

void ScheduleRecording::within(std::vector<schedule::Op>& body, const std::function<void()>& record,
                               Here at) {
  if (open.size() == schedule::most_bodies + 1)
    find(at, say("more than ", schedule::most_bodies, " nested loops and conditions"));
  const Inside inside(*this, body);
  record();
}

bool ScheduleRecording::has_body(bool given, std::string_view what, Here at) {
  if (!given) find(at, say(what, " is given an empty function for what is in it: use [] {} for nothing"));
  return given;
}

void ScheduleRecording::transfers_alone(Group& group, const std::function<void(Group&)>& record) {
  std::vector<schedule::Op> others;
  {
    const Inside inside(*this, others);
    record(group);
  }
  for (schedule::Op& other : others) {
    if (other.kind == schedule::OpKind::alloc) {
      open.back()->push_back(std::move(other));  // it is recorded once, wherever the author wrote it
      continue;
    }
    const SourceLine line = s.line_of(other.at);
    findings.push_back({"dsl",
                        line,
                        {},
                        say("a group has sends and receives alone, but in its body is a '",
                            schedule::info(other.kind).name, "'"),
                        {},
                        "put it before or after the group, and put loops and conditions around the group"});
  }
}

schedule::Transfer ScheduleRecording::transfer(bool is_send, const View& view, const Index& peer,
                                               const TransferOptions& options, Here at) {
  if (options.tag > schedule::most_tag)
    find(at, say("tag ", options.tag, ", expected at most ", schedule::most_tag));
  return {is_send, raw(view, at), expr(peer, at), options.tag, options.via, place(at)};
}

void ScheduleRecording::token(schedule::Op& op, const Token& token, Here at) {
  is_own(token, "a token", at);
  op.token = token.id_;
  op.index = expr(token.index_, at);
}

const schedule::Stream& ScheduleRecording::raw(const Stream& stream, Here at) {
  static const schedule::Stream none;
  return is_own(stream, "a stream", at) ? stream.stream_ : none;
}

const schedule::View& ScheduleRecording::raw(const View& view, Here at) {
  static const schedule::View none;
  return is_own(view, "a view", at) ? view.view_ : none;
}

ScheduleRecording::Size ScheduleRecording::size_of(schedule::Expr expr) const {
  const auto known = sizes_.find(expr.id);
  return known == sizes_.end() ? Size{} : known->second;
}

schedule::Expr ScheduleRecording::binary(schedule::ExprKind kind, const Index& left, const Index& right) {
  const auto operand = [&](const Index& index) {
    return index.recording_ ? index.expr_ : s.exprs.constant(index.value_);
  };
  const schedule::Expr one = operand(left), other = operand(right), made = s.exprs.binary(kind, one, other);
  const Size a = size_of(one), b = size_of(other);
  constexpr unsigned enough = 1u << 30;  // parts are shared, so the numbers grow quickly
  sizes_[made.id] = {std::max(a.nested, b.nested) + 1, std::min(enough, a.operators + b.operators + 1)};
  return made;
}

}  // namespace chorale::dsl
