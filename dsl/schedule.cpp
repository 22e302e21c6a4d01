#include "chorale/dsl/schedule.hpp"

#include <algorithm>

#include "chorale/did_you_mean.hpp"
#include "chorale/schedule/collective.hpp"
#include "chorale/schedule/names.hpp"
#include "chorale/schedule/place.hpp"
#include "dsl/schedule_recording.hpp"

namespace chorale::dsl {

using schedule::OpKind;

Index Index::apply(schedule::ExprKind kind, const Index& left, const Index& right) {
  return ScheduleRecording::apply(kind, left, right);
}

View View::select(uint8_t axis, Index index, Here at) const {
  return recording_->part(*this, axis, index, nullptr, at);
}
View View::slice(uint8_t axis, Index first, Index length, Here at) const {
  return recording_->part(*this, axis, first, &length, at);
}

void Group::send(const View& src, Index peer, TransferOptions options, Here at) {
  transfers_.push_back(recording_->transfer(true, src, peer, options, at));
}
void Group::recv(const View& dst, Index peer, TransferOptions options, Here at) {
  transfers_.push_back(recording_->transfer(false, dst, peer, options, at));
}

void Stream::copy(const View& dst, const View& src, Here at) const {
  schedule::Op& op = recording_->op(OpKind::copy, *this, at);
  op.writes = {recording_->raw(dst, at)};
  op.reads = {recording_->raw(src, at)};
}
void Stream::fill(const View& dst, Index value, Here at) const {
  schedule::Op& op = recording_->op(OpKind::fill, *this, at);
  op.writes = {recording_->raw(dst, at)};
  op.value = recording_->expr(value, at);
}
void Stream::send(const View& src, Index peer, TransferOptions options, Here at) const {
  recording_->op(OpKind::send, *this, at).transfers = {recording_->transfer(true, src, peer, options, at)};
}
void Stream::recv(const View& dst, Index peer, TransferOptions options, Here at) const {
  recording_->op(OpKind::recv, *this, at).transfers = {recording_->transfer(false, dst, peer, options, at)};
}
Token Stream::group(const std::function<void(Group&)>& body, Here at) const {
  return group(recording_->token(), body, at);
}
Token Stream::group(Token token, const std::function<void(Group&)>& body, Here at) const {
  Group group = recording_->group();
  if (recording_->has_body(bool(body), "a group", at)) recording_->transfers_alone(group, body);
  schedule::Op& op = recording_->op(OpKind::group, *this, at);
  op.transfers = std::move(ScheduleRecording::transfers(group));
  recording_->token(op, token, at);
  return token;
}
void Stream::wait(Token token, Here at) const {
  recording_->token(recording_->op(OpKind::wait, *this, at), token, at);
}
Token Stream::collective(std::string_view kind, const View& dst, const View& src, CollectiveOptions options,
                         Here at) const {
  const auto& known = schedule::collective_names;
  if (std::find(std::begin(known), std::end(known), kind) == std::end(known)) {
    std::string names;
    for (const std::string_view name : known) names += (names.empty() ? "" : ", ") + std::string(name);
    recording_->find(
        at, say("there is no collective '", kind, "', expected one of ", names, did_you_mean(kind, known)));
  }
  const Token token = options.token ? *options.token : recording_->token();
  schedule::Op& op = recording_->op(OpKind::collective, *this, at);
  op.name = kind;
  op.writes = {recording_->raw(dst, at)};
  op.reads = {recording_->raw(src, at)};
  op.peer = recording_->expr(options.root, at);
  op.reduce = options.reduce;
  recording_->token(op, token, at);
  return token;
}
void Stream::launch(std::string_view plan, const View& dst, const View& src, Here at) const {
  schedule::Op& op = recording_->op(OpKind::launch, *this, at);
  op.name = plan;
  op.writes = {recording_->raw(dst, at)};
  op.reads = {recording_->raw(src, at)};
}
void Stream::call(std::string_view function, std::vector<View> writes, std::vector<View> reads,
                  std::map<std::string, Index> attributes, Here at) const {
  recording_->name_of("a function", function, at);
  schedule::Op& op = recording_->op(OpKind::call, *this, at);
  op.name = function;
  op.writes = recording_->raw(writes, at);
  op.reads = recording_->raw(reads, at);
  for (const auto& [name, value] : attributes) op.attributes[name] = recording_->expr(value, at);
}
void Stream::after(const std::vector<Stream>& streams, Here at) const {
  recording_->op(OpKind::after, *this, at).streams = recording_->raw(streams, at);
}
void Stream::fork(const std::vector<Stream>& streams, Here at) const {
  recording_->op(OpKind::fork, *this, at).streams = recording_->raw(streams, at);
}
void Stream::join(const std::vector<Stream>& streams, Here at) const {
  recording_->op(OpKind::join, *this, at).streams = recording_->raw(streams, at);
}
void Stream::barrier(Here at) const { recording_->op(OpKind::barrier, *this, at); }
void Stream::post(Flag flag, Index peer, Index index, Here at) const {
  schedule::Op& op = recording_->op(OpKind::post, *this, at);
  op.flag = recording_->raw(flag, at);
  op.peer = recording_->expr(peer, at);
  op.index = recording_->expr(index, at);
}
void Stream::take(Flag flag, Index peer, Index index, Here at) const {
  schedule::Op& op = recording_->op(OpKind::take, *this, at);
  op.flag = recording_->raw(flag, at);
  op.peer = recording_->expr(peer, at);
  op.index = recording_->expr(index, at);
}
void Stream::mark(std::string_view text, Here at) const {
  recording_->op(OpKind::mark, *this, at).name = text;
}

Schedule::Schedule(ScheduleOptions options, Here at)
    : recording_(std::make_unique<ScheduleRecording>(std::move(options))) {
  if (recording_->name.empty()) recording_->find(at, "the schedule has no name");
  std::vector<uint32_t> ranks = recording_->s.ranks;
  if (ranks.empty())
    recording_->find(at, "the schedule does not say for how many ranks it is: .ranks = {2, 4, 8}");
  std::sort(ranks.begin(), ranks.end());
  for (size_t k = 0; k < ranks.size(); ++k) {
    if (ranks[k] == 0 || ranks[k] > schedule::most_ranks)
      recording_->find(at, say(ranks[k], " ranks, expected 1 to ", schedule::most_ranks));
    if (k && ranks[k] == ranks[k - 1]) recording_->find(at, say(ranks[k], " ranks are listed twice"));
  }
}
Schedule::Schedule(Schedule&&) noexcept = default;
Schedule::~Schedule() = default;

Index Schedule::rank() const { return recording_->index(recording_->s.exprs.symbol("rank")); }
Index Schedule::ranks() const { return recording_->index(recording_->s.exprs.symbol("ranks")); }
Index Schedule::streams() const { return recording_->index(recording_->s.exprs.symbol("lanes")); }
Index Schedule::param(std::string_view name, int64_t value, Here at) {
  std::vector<schedule::Param>& params = recording_->s.params;
  recording_->name_of("a parameter", name, at);
  recording_->unique(params, "parameter", name, at);
  if (schedule::is_own_symbol(name))
    recording_->find(
        at, say("a parameter '", name, "', but expressions use this name for one of their own values"));
  params.push_back({std::string(name), value});
  return recording_->index(recording_->s.exprs.symbol(name));
}

Tensor Schedule::input(std::string_view name, DType dtype, std::vector<Extent> axes, Here at) {
  return recording_->tensor(name, dtype, axes, schedule::Role::in, false, at);
}
Tensor Schedule::output(std::string_view name, DType dtype, std::vector<Extent> axes, Here at) {
  return recording_->tensor(name, dtype, axes, schedule::Role::out, false, at);
}
Tensor Schedule::temporary(std::string_view name, DType dtype, std::vector<Extent> axes, bool zero, Here at) {
  const Tensor tensor = recording_->tensor(name, dtype, axes, schedule::Role::temp, zero, at);
  recording_->op(OpKind::alloc, schedule::Stream{}, at).writes = {recording_->raw(tensor, at)};
  return tensor;
}

Stream Schedule::main() const { return recording_->stream({}); }
Stream Schedule::stream(std::string_view name, Here at) {
  recording_->name_of("a stream", name, at);
  if (schedule::is_own_stream(name))
    recording_->find(at, say("a stream '", name, "': take ", name == "main" ? "main()" : "pool(index)"));
  std::vector<std::string>& streams = recording_->s.streams;
  const auto known = std::find(streams.begin(), streams.end(), name);
  const uint32_t position = uint32_t(known - streams.begin());
  if (known == streams.end()) streams.emplace_back(name);
  return recording_->stream({.kind = schedule::Stream::Kind::named, .index = {}, .name = position});
}
Token Schedule::token() { return recording_->token(); }
Stream Schedule::pool(Index index, Here at) const {
  return recording_->stream(
      {.kind = schedule::Stream::Kind::pool, .index = recording_->expr(index, at), .name = 0});
}
Flag Schedule::flag(std::string_view name, schedule::Flag::Kind kind, Here at) {
  recording_->name_of("a flag", name, at);
  recording_->unique(recording_->s.flags, "flag", name, at);
  recording_->s.flags.push_back({std::string(name), kind, recording_->place(at)});
  return recording_->flag(uint32_t(recording_->s.flags.size() - 1));
}
void Schedule::function(std::string_view name, uint32_t writes, uint32_t reads, Here at) {
  recording_->name_of("a function", name, at);
  recording_->unique(recording_->s.functions, "function", name, at);
  recording_->s.functions.push_back({std::string(name), writes, reads});
}

void Schedule::loop(std::string_view variable, Index lo, Index hi, const std::function<void(Index)>& body,
                    Here at) {
  schedule::Op op;  // not in place, because the body may not move it
  op.kind = OpKind::for_;
  op.at = recording_->place(at);
  op.name = variable;
  op.lo = recording_->expr(lo, at);
  op.hi = recording_->expr(hi, at);
  recording_->name_of("a variable", variable, at);
  if (!recording_->has_body(bool(body), "a loop", at)) return;
  recording_->within(
      op.body, [&] { body(recording_->index(recording_->s.exprs.symbol(variable))); }, at);
  recording_->open.back()->push_back(std::move(op));
}
void Schedule::when(Index condition, const std::function<void()>& then,
                    const std::function<void()>& otherwise, Here at) {
  schedule::Op op;
  op.kind = OpKind::if_;
  op.at = recording_->place(at);
  op.value = recording_->expr(condition, at);
  if (!recording_->has_body(bool(then), "a condition", at)) return;
  recording_->within(op.body, then, at);
  if (otherwise) recording_->within(op.orelse, otherwise, at);
  recording_->open.back()->push_back(std::move(op));
}

void Schedule::set(const Tensor& out, const Tensor& in, Here at) {
  recording_->compute("set", out, {in}, at);
}
void Schedule::matmul(const Tensor& out, const Tensor& a, const Tensor& b, Here at) {
  recording_->compute("matmul", out, {a, b}, at);
}
void Schedule::linear(const Tensor& out, const Tensor& in, const Tensor& weight, Here at) {
  recording_->compute("linear", out, {in, weight}, at);
}
void Schedule::linear(const Tensor& out, const Tensor& in, const Tensor& weight, const Tensor& bias,
                      Here at) {
  recording_->compute("linear", out, {in, weight, bias}, at);
}
void Schedule::add(const Tensor& out, const Tensor& a, const Tensor& b, Here at) {
  recording_->compute("add", out, {a, b}, at);
}
void Schedule::sum(const Tensor& out, const Tensor& in, uint8_t axis, Here at) {
  recording_->compute("sum", out, {in}, at).attributes["axis"] = recording_->s.exprs.constant(axis);
}

Schedule::operator Program() const {
  Plan plan;
  plan.name = recording_->name;
  plan.collective = "custom";
  const auto schedule = std::make_shared<schedule::Schedule>(recording_->s);
  Diagnostics findings = recording_->findings;
  // Operations on views of another schedule have no tensor here, so nothing is lowered.
  if (!recording_->has_foreign) {
    schedule::lower(*schedule, recording_->lowering, findings);
    schedule::place(*schedule);
  }
  plan.extension.schedule = schedule;
  return Program(std::move(plan), std::move(findings));
}

}  // namespace chorale::dsl
