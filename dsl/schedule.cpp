#include "chorale/dsl/schedule.hpp"

#include <algorithm>

#include "chorale/host/place.hpp"
#include "dsl/recording.hpp"

namespace chorale::dsl {

class ScheduleRecording {
 public:
  explicit ScheduleRecording(ScheduleOptions options)
      : name(std::move(options.name)), lowering(options.lowering) {
    s.ranks = std::move(options.ranks);
    s.pool = s.exprs.constant(options.pool);
  }

  std::string name;
  host::Lowering lowering;
  host::Schedule s;
  std::vector<std::vector<host::Op>*> open = {&s.body};
  Diagnostics findings;
  uint32_t tokens = 0;

  uint32_t place(Here at) {
    const SourceLine line{base_name(at.file), at.line};
    const auto known = std::find(s.source.begin(), s.source.end(), line);
    const uint32_t position = uint32_t(known - s.source.begin());
    if (known == s.source.end()) s.source.push_back(line);
    return position + 1;
  }
  void find(Here at, std::string text) {
    findings.push_back({"dsl", {base_name(at.file), at.line}, {}, std::move(text), {}, {}});
  }

  Index index(host::Expr expr) { return {this, expr}; }
  host::Expr expr(const Index& index) {
    return index.recording_ ? index.expr_ : s.exprs.constant(index.value_);
  }
  static Index apply(host::ExprKind kind, const Index& left, const Index& right) {
    ScheduleRecording* const recording = left.recording_ ? left.recording_ : right.recording_;
    if (recording)
      return recording->index(recording->s.exprs.binary(kind, recording->expr(left), recording->expr(right)));
    host::Exprs numbers;  // of two numbers
    const host::Evaluated value = host::evaluate(
        numbers, numbers.binary(kind, numbers.constant(left.value_), numbers.constant(right.value_)), {});
    if (!value) throw std::invalid_argument("an index " + value.problem);
    return Index(value.value);
  }

  View part(const View& of, uint8_t axis, Index first, const Index* length, Here at) {
    View view = of;
    auto& selects = view.view_.selects;
    const auto behind = std::find_if(selects.begin(), selects.end(),
                                     [&](const host::Select& one) { return one.axis >= axis; });
    const host::Tensor& tensor = s.tensors[of.view_.tensor];
    if (axis >= tensor.axes.size()) {
      find(at, say("axis ", int(axis), " of '", tensor.name, "', which has ", tensor.axes.size(), " axes"));
    } else if (behind != selects.end() && behind->axis == axis) {
      find(at, say("axis ", int(axis), " of '", tensor.name, "' is selected twice"));
    } else {
      host::Select select{.axis = axis, .lo = expr(first), .len = {}};
      if (length) select.len = expr(*length);
      selects.insert(behind, select);
    }
    return view;
  }

  Tensor tensor(std::string_view name, DType dtype, const std::vector<Extent>& axes, host::Role role,
                bool zero, Here at) {
    if (s.find_tensor(name) < s.tensors.size()) find(at, say("there is a tensor '", name, "' already"));
    host::Tensor made{.name = std::string(name),
                      .dtype = dtype,
                      .axes = {},
                      .role = role,
                      .space = host::Space::local,
                      .zero = zero,
                      .at = place(at)};
    for (const Extent& axis : axes) made.axes.push_back({expr(axis.extent), axis.tag});
    s.tensors.push_back(std::move(made));
    return {this, host::View{uint32_t(s.tensors.size() - 1), {}}};
  }

  host::Op& op(host::OpKind kind, const host::Lane& lane, Here at) {
    host::Op& op = open.back()->emplace_back();
    op.kind = kind;
    op.lane = lane;
    op.at = place(at);
    return op;
  }
  host::Op& op(host::OpKind kind, const Lane& lane, Here at) { return op(kind, lane.lane_, at); }

  /// An operation of the layout form.
  host::Op& compute(std::string_view function, const Tensor& out, const std::vector<Tensor>& in, Here at) {
    if (open.size() > 1)
      find(at, say("'", function, "' is of whole tensors, and cannot be in a loop or condition"));
    host::Op& op = s.layout.emplace_back();
    op.kind = host::OpKind::compute;
    op.name = function;
    op.writes = {raw(out)};
    for (const Tensor& one : in) op.reads.push_back(raw(one));
    op.at = place(at);
    return op;
  }

  void within(std::vector<host::Op>& body, const std::function<void()>& record) {
    open.push_back(&body);
    record();
    open.pop_back();
  }

  host::Transfer transfer(bool is_send, const View& view, const Index& peer, const TransferOptions& options,
                          Here at) {
    return {is_send, view.view_, expr(peer), options.tag, options.via, place(at)};
  }
  Group group() { return Group(this); }
  static std::vector<host::Transfer>& transfers(Group& group) { return group.transfers_; }
  Token token() { return Token(++tokens); }
  static uint32_t id(Token token) { return token.id_; }
  static uint32_t id(Flag flag) { return flag.id_; }
  static const host::View& raw(const View& view) { return view.view_; }
  static std::vector<host::View> raw(const std::vector<View>& views) {
    std::vector<host::View> list;
    for (const View& view : views) list.push_back(view.view_);
    return list;
  }
  static std::vector<host::Lane> raw(const std::vector<Lane>& lanes) {
    std::vector<host::Lane> list;
    for (const Lane& lane : lanes) list.push_back(lane.lane_);
    return list;
  }
  Lane lane(host::Lane lane) { return {this, lane}; }
  Flag flag(uint32_t id) { return Flag(id); }
};

using host::OpKind;

Index Index::apply(host::ExprKind kind, const Index& left, const Index& right) {
  return ScheduleRecording::apply(kind, left, right);
}

View View::select(uint8_t axis, Index index) const {
  return recording_->part(*this, axis, index, nullptr, Here::current());
}
View View::slice(uint8_t axis, Index first, Index length) const {
  return recording_->part(*this, axis, first, &length, Here::current());
}

void Group::send(const View& src, Index peer, TransferOptions options, Here at) {
  transfers_.push_back(recording_->transfer(true, src, peer, options, at));
}
void Group::recv(const View& dst, Index peer, TransferOptions options, Here at) {
  transfers_.push_back(recording_->transfer(false, dst, peer, options, at));
}

void Lane::copy(const View& dst, const View& src, Here at) const {
  host::Op& op = recording_->op(OpKind::copy, *this, at);
  op.writes = {ScheduleRecording::raw(dst)};
  op.reads = {ScheduleRecording::raw(src)};
}
void Lane::fill(const View& dst, Index value, Here at) const {
  host::Op& op = recording_->op(OpKind::fill, *this, at);
  op.writes = {ScheduleRecording::raw(dst)};
  op.value = recording_->expr(value);
}
void Lane::send(const View& src, Index peer, TransferOptions options, Here at) const {
  recording_->op(OpKind::send, *this, at).transfers = {recording_->transfer(true, src, peer, options, at)};
}
void Lane::recv(const View& dst, Index peer, TransferOptions options, Here at) const {
  recording_->op(OpKind::recv, *this, at).transfers = {recording_->transfer(false, dst, peer, options, at)};
}
Token Lane::group(const std::function<void(Group&)>& body, Here at) const {
  Group group = recording_->group();
  body(group);
  const Token token = recording_->token();
  host::Op& op = recording_->op(OpKind::group, *this, at);
  op.transfers = std::move(ScheduleRecording::transfers(group));
  op.token = ScheduleRecording::id(token);
  return token;
}
void Lane::wait(Token token, Here at) const {
  recording_->op(OpKind::wait, *this, at).token = ScheduleRecording::id(token);
}
Token Lane::collective(std::string_view kind, const View& dst, const View& src, CollectiveOptions options,
                       Here at) const {
  const auto& known = host::collective_names;
  if (std::find(std::begin(known), std::end(known), kind) == std::end(known))
    recording_->find(at, say("there is no collective '", kind, "'"));
  const Token token = recording_->token();
  host::Op& op = recording_->op(OpKind::collective, *this, at);
  op.name = kind;
  op.writes = {ScheduleRecording::raw(dst)};
  op.reads = {ScheduleRecording::raw(src)};
  op.peer = recording_->expr(options.root);
  op.reduce = options.reduce;
  op.token = ScheduleRecording::id(token);
  return token;
}
void Lane::launch(std::string_view plan, const View& dst, const View& src, Here at) const {
  host::Op& op = recording_->op(OpKind::launch, *this, at);
  op.name = plan;
  op.writes = {ScheduleRecording::raw(dst)};
  op.reads = {ScheduleRecording::raw(src)};
}
void Lane::call(std::string_view function, std::vector<View> writes, std::vector<View> reads,
                std::map<std::string, Index> attributes, Here at) const {
  host::Op& op = recording_->op(OpKind::call, *this, at);
  op.name = function;
  op.writes = ScheduleRecording::raw(writes);
  op.reads = ScheduleRecording::raw(reads);
  for (const auto& [name, value] : attributes) op.attributes[name] = recording_->expr(value);
}
void Lane::after(const std::vector<Lane>& lanes, Here at) const {
  recording_->op(OpKind::after, *this, at).lanes = ScheduleRecording::raw(lanes);
}
void Lane::fork(const std::vector<Lane>& lanes, Here at) const {
  recording_->op(OpKind::fork, *this, at).lanes = ScheduleRecording::raw(lanes);
}
void Lane::join(const std::vector<Lane>& lanes, Here at) const {
  recording_->op(OpKind::join, *this, at).lanes = ScheduleRecording::raw(lanes);
}
void Lane::barrier(Here at) const { recording_->op(OpKind::barrier, *this, at); }
void Lane::post(Flag flag, Index peer, Index index, Here at) const {
  host::Op& op = recording_->op(OpKind::post, *this, at);
  op.flag = ScheduleRecording::id(flag);
  op.peer = recording_->expr(peer);
  op.index = recording_->expr(index);
}
void Lane::take(Flag flag, Index peer, Index index, Here at) const {
  host::Op& op = recording_->op(OpKind::take, *this, at);
  op.flag = ScheduleRecording::id(flag);
  op.peer = recording_->expr(peer);
  op.index = recording_->expr(index);
}
void Lane::mark(std::string_view text, Here at) const { recording_->op(OpKind::mark, *this, at).name = text; }

Schedule::Schedule(ScheduleOptions options, Here at)
    : recording_(std::make_unique<ScheduleRecording>(std::move(options))) {
  if (recording_->name.empty()) recording_->find(at, "the schedule has no name");
}
Schedule::Schedule(Schedule&&) noexcept = default;
Schedule::~Schedule() = default;

Index Schedule::rank() const { return recording_->index(recording_->s.exprs.symbol("rank")); }
Index Schedule::ranks() const { return recording_->index(recording_->s.exprs.symbol("ranks")); }
Index Schedule::lanes() const { return recording_->index(recording_->s.exprs.symbol("lanes")); }
Index Schedule::param(std::string_view name, int64_t value, Here at) {
  std::vector<host::Param>& params = recording_->s.params;
  for (const host::Param& known : params)
    if (known.name == name) recording_->find(at, say("there is a parameter '", name, "' already"));
  params.push_back({std::string(name), value});
  return recording_->index(recording_->s.exprs.symbol(name));
}

Tensor Schedule::input(std::string_view name, DType dtype, std::vector<Extent> axes, Here at) {
  return recording_->tensor(name, dtype, axes, host::Role::in, false, at);
}
Tensor Schedule::output(std::string_view name, DType dtype, std::vector<Extent> axes, Here at) {
  return recording_->tensor(name, dtype, axes, host::Role::out, false, at);
}
Tensor Schedule::temporary(std::string_view name, DType dtype, std::vector<Extent> axes, bool zero, Here at) {
  const Tensor tensor = recording_->tensor(name, dtype, axes, host::Role::temp, zero, at);
  recording_->op(OpKind::alloc, host::Lane{}, at).writes = {ScheduleRecording::raw(tensor)};
  return tensor;
}

Lane Schedule::main() const { return recording_->lane({}); }
Lane Schedule::lane(std::string_view name) {
  std::vector<std::string>& lanes = recording_->s.lanes;
  const auto known = std::find(lanes.begin(), lanes.end(), name);
  const uint32_t position = uint32_t(known - lanes.begin());
  if (known == lanes.end()) lanes.emplace_back(name);
  return recording_->lane({.kind = host::Lane::Kind::named, .index = {}, .name = position});
}
Lane Schedule::pool(Index index) const {
  return recording_->lane({.kind = host::Lane::Kind::pool, .index = recording_->expr(index), .name = 0});
}
Flag Schedule::flag(std::string_view name, host::Flag::Kind kind, Here at) {
  recording_->s.flags.push_back({std::string(name), kind, recording_->place(at)});
  return recording_->flag(uint32_t(recording_->s.flags.size() - 1));
}
void Schedule::function(std::string_view name, uint32_t writes, uint32_t reads, Here at) {
  for (const host::Function& known : recording_->s.functions)
    if (known.name == name) recording_->find(at, say("there is a function '", name, "' already"));
  recording_->s.functions.push_back({std::string(name), writes, reads});
}

void Schedule::loop(std::string_view variable, Index lo, Index hi, const std::function<void(Index)>& body,
                    Here at) {
  host::Op op;  // not in place: the body may not move it
  op.kind = OpKind::for_;
  op.at = recording_->place(at);
  op.name = variable;
  op.lo = recording_->expr(lo);
  op.hi = recording_->expr(hi);
  recording_->within(op.body, [&] { body(recording_->index(recording_->s.exprs.symbol(variable))); });
  recording_->open.back()->push_back(std::move(op));
}
void Schedule::when(Index condition, const std::function<void()>& then,
                    const std::function<void()>& otherwise, Here at) {
  host::Op op;
  op.kind = OpKind::if_;
  op.at = recording_->place(at);
  op.value = recording_->expr(condition);
  recording_->within(op.body, then);
  if (otherwise) recording_->within(op.orelse, otherwise);
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
  const auto schedule = std::make_shared<host::Schedule>(recording_->s);
  Diagnostics findings = recording_->findings;
  host::lower(*schedule, recording_->lowering, findings);
  host::place(*schedule);
  plan.extension.host = schedule;
  return Program(std::move(plan), std::move(findings));
}

}  // namespace chorale::dsl
