// This file unrolls a schedule for every rank.

#include <fmt/format.h>

#include <set>
#include <tuple>

#include "chorale/schedule/concrete.hpp"
#include "collectives.hpp"
#include "compiler/schedule/report.hpp"
#include "match.hpp"

namespace chorale::schedule {
namespace {

/// Limits the number of steps of all ranks together. A larger number is a mistake in a loop.
constexpr size_t most_steps = 4'000'000;
/// Limits the number of turns of all loops of all ranks. Loops with few operations have more turns than
/// steps.
constexpr uint64_t most_turns = 4 * most_steps;

/// Ends the work when something is wrong with the schedule on every rank.
struct Stop {};

class Unroller {
 public:
  Unroller(const Schedule& schedule, const Settings& settings, Diagnostics& findings)
      : s_(schedule), settings_(settings), out_(findings) {}

  Concrete all();

 private:
  void symbols();
  void tensors();
  void streams();
  int64_t number(Expr, uint32_t at, const char* what);
  bool is_true(Expr expr, uint32_t at) { return number(expr, at, "condition") != 0; }
  Box box(const View&, uint32_t at);
  uint32_t stream(const Stream&, uint32_t at);
  uint32_t peer(Expr, uint32_t at, bool may_be_self);
  void ops(const std::vector<Op>&);
  void op(const Op&);
  void loop(const Op&);
  void group(const Op&);
  void token(const Op&, uint32_t position);
  void wait(const Op&);
  void flag(const Op&);
  void storage(const Op&);
  void uses(uint32_t tensor, uint32_t at);
  Step& step(StepKind, const Op&);
  void say(const char* check, uint32_t at, std::string text, std::string help = {}) {
    report(out_, s_, check, at, std::move(text), std::move(help));
  }
  std::string here() const;
  std::string token_words(uint32_t token, int64_t index) const;
  /// Returns a text such as "there are 2 ranks".
  std::string there_are_ranks() const {
    return (settings_.ranks == 1 ? "there is " : "there are ") + count(settings_.ranks, "rank");
  }

  const Schedule& s_;
  const Settings& settings_;
  Diagnostics& out_;
  Concrete made_;
  Values values_;
  uint32_t rank_ = 0, pool_ = 0;
  std::vector<std::pair<std::string, int64_t>> turn_;
  std::map<std::pair<uint32_t, int64_t>, uint32_t> tokens_;  // outstanding tokens: the step that made each
  std::set<uint32_t> indexed_;                               // tokens whose index is an expression somewhere
  std::map<std::tuple<uint32_t, int64_t, uint32_t, uint32_t>, uint32_t> flags_;
  std::vector<Collective> collectives_;
  std::vector<bool> used_, allocated_, alive_;  // by tensor, on this rank so far; alive: not freed
  size_t steps_ = 0;
  uint64_t turns_ = 0;
};

std::string Unroller::here() const {
  Step at;
  at.turn = turn_;
  return where(rank_, at);
}

/// Returns "token 1", or "token 1[2]" if the token has indices.
std::string Unroller::token_words(uint32_t token, int64_t index) const {
  const bool plain = index == 0 && !indexed_.contains(token);
  return fmt::format("token {}{}", token, plain ? "" : fmt::format("[{}]", index));
}

int64_t Unroller::number(Expr expr, uint32_t at, const char* what) {
  const Evaluated value = evaluate(s_.exprs, expr, values_);
  if (value) return value.value;
  say("bounds", at, fmt::format("the {} {} {} on {}", what, text(s_.exprs, expr), value.problem, here()));
  throw Stop{};
}

void Unroller::symbols() {
  values_ = {{"ranks", settings_.ranks}};
  for (const Param& param : s_.params) {
    const auto given = settings_.params.find(param.name);
    if (given == settings_.params.end() && !param.value) {
      say("tags", 0, fmt::format("parameter '{}' has no value", param.name),
          fmt::format("give it one in the plan's \"params\", with chorale run --param {}=.., or in "
                      "ScheduleArguments::params",
                      param.name));
      throw Stop{};
    }
    values_[param.name] = given == settings_.params.end() ? *param.value : given->second;
  }
  const int64_t pool = number(s_.pool, 0, "number of pool streams");
  if (pool < 0 || pool > 1024) {
    say("tags", 0, fmt::format("the schedule has {} pool streams, expected 0 to 1024", pool));
    throw Stop{};
  }
  values_["lanes"] = pool_ = uint32_t(pool);
}

void Unroller::tensors() {
  for (const Tensor& tensor : s_.tensors) {
    ConcreteTensor one{tensor.name, tensor.dtype, {},         dtype_size(tensor.dtype),
                       tensor.role, tensor.space, tensor.zero};
    for (const Axis& axis : tensor.axes) {
      const int64_t extent = number(axis.extent, tensor.at, "extent");
      if (extent < 0) {
        say("bounds", tensor.at,
            fmt::format("an axis of '{}' has extent {}, expected 0 or more", tensor.name, extent));
        throw Stop{};
      }
      if (const std::string left = rest(s_.exprs, axis.extent, values_); !left.empty()) {
        say("shapes", tensor.at,
            fmt::format("an axis of '{}' would leave elements out: {}", tensor.name, left),
            "give parameters that the number of ranks divides");
        throw Stop{};
      }
      if (axis.tag == Tag::ranks && extent != settings_.ranks) {
        say("tags", tensor.at,
            fmt::format("an axis of '{}' is spread over the ranks and has extent {}, but {}", tensor.name,
                        extent, there_are_ranks()),
            "split the axis in two: [ranks, extent / ranks]");
        throw Stop{};
      }
      one.shape.push_back(axis.tag == Tag::ranks ? 1 : uint64_t(extent));
      if (__builtin_mul_overflow(one.bytes, one.shape.back(), &one.bytes) || one.bytes > INT64_MAX) {
        say("bounds", tensor.at, fmt::format("'{}' has more than 2^63 bytes", tensor.name));
        throw Stop{};
      }
    }
    made_.tensors.push_back(std::move(one));
  }
}

void Unroller::streams() {
  made_.streams = {"main"};
  made_.streams.insert(made_.streams.end(), s_.streams.begin(), s_.streams.end());
  for (uint32_t k = 0; k < pool_; ++k) made_.streams.push_back(fmt::format("pool[{}]", k));
}

/// Records that a temporary is allocated or freed, and reports a use before or after that. Temporaries are
/// allocated when the schedule is bound, so they exist in each turn. Still, a schedule must say so before it
/// uses them and must not use them after it has freed them.
void Unroller::storage(const Op& op) {
  const uint32_t tensor = op.writes[0].tensor;
  if (op.kind == OpKind::free_) {
    alive_[tensor] = false;
    return;
  }
  if (op.kind != OpKind::alloc) return;
  alive_[tensor] = true;
  if (!used_[tensor] || allocated_[tensor]) {
    allocated_[tensor] = true;
    return;
  }
  say("contents", op.at,
      fmt::format("'{}' is used on {} before it is made here", made_.tensors[tensor].name, here()),
      "make it before its first use");
  throw Stop{};
}

void Unroller::uses(uint32_t tensor, uint32_t at) {
  used_[tensor] = true;
  if (alive_[tensor]) return;
  say("contents", at,
      fmt::format("'{}' is used on {} after it was freed", made_.tensors[tensor].name, here()),
      "free it after its last use");
  throw Stop{};
}

Box Unroller::box(const View& view, uint32_t at) {
  uses(view.tensor, at);
  const ConcreteTensor& tensor = made_.tensors[view.tensor];
  Box box{.tensor = view.tensor,
          .lo = std::vector<uint64_t>(tensor.shape.size()),
          .extent = tensor.shape,
          .shape = {},
          .strides = {}};
  std::vector<bool> gone(tensor.shape.size());
  for (const Select& select : view.selects) {
    const int64_t lo = number(select.lo, at, "index");
    const int64_t len = select.len ? number(*select.len, at, "length") : 1;
    const uint64_t extent = tensor.shape[select.axis];
    if (lo < 0 || len < 0 || uint64_t(lo) > extent || uint64_t(len) > extent - uint64_t(lo)) {
      const std::string part =
          select.len ? fmt::format("elements {}:{}", lo, lo + len) : fmt::format("index {}", lo);
      say("bounds", at,
          fmt::format("{} of axis {} of '{}' on {}, but the axis has {}", part, select.axis, tensor.name,
                      here(), extent));
      throw Stop{};
    }
    box.lo[select.axis] = uint64_t(lo);
    box.extent[select.axis] = uint64_t(len);
    gone[select.axis] = !select.len;
  }
  uint64_t stride = 1;
  box.bytes = dtype_size(tensor.dtype);
  bool inner_whole = true;
  for (size_t axis = tensor.shape.size(); axis-- > 0;) {
    box.offset_bytes += box.lo[axis] * stride * dtype_size(tensor.dtype);
    if (!gone[axis]) {
      box.shape.insert(box.shape.begin(), box.extent[axis]);
      box.strides.insert(box.strides.begin(), stride);
    }
    // If an axis is used only in part, every axis outside it must have a single element.
    if (!inner_whole && box.extent[axis] != 1) box.contiguous = false;
    if (box.extent[axis] != tensor.shape[axis]) inner_whole = false;
    stride *= tensor.shape[axis];
    box.bytes *= box.extent[axis];
  }
  return box;
}

uint32_t Unroller::stream(const Stream& stream, uint32_t at) {
  if (stream.kind == Stream::Kind::main) return 0;
  if (stream.kind == Stream::Kind::named) return 1 + stream.name;
  const int64_t index = number(stream.index, at, "stream");
  if (index < 0 || index >= pool_) {
    say("bounds", at, fmt::format("pool stream {} on {}, but there are {}", index, here(), pool_));
    throw Stop{};
  }
  return uint32_t(1 + s_.streams.size() + size_t(index));
}

uint32_t Unroller::peer(Expr expr, uint32_t at, bool may_be_self) {
  const int64_t peer = number(expr, at, "peer");
  if (peer < 0 || peer >= int64_t(settings_.ranks)) {
    say("peers", at, fmt::format("peer {} on {}, but {}", peer, here(), there_are_ranks()));
    throw Stop{};
  }
  if (!may_be_self && peer == rank_) {
    say("peers", at, fmt::format("{} is its own peer", here()), "copy what stays on the rank");
    throw Stop{};
  }
  return uint32_t(peer);
}

Step& Unroller::step(StepKind kind, const Op& op) {
  if (++steps_ > most_steps) {
    say("bounds", op.at, fmt::format("more than {} operations", most_steps));
    throw Stop{};
  }
  Step step;
  step.kind = kind;
  step.stream = stream(op.stream, op.at);
  for (const View& view : op.writes) step.writes.push_back(box(view, op.at));
  for (const View& view : op.reads) step.reads.push_back(box(view, op.at));
  step.at = op.at;
  step.turn = turn_;
  return made_.steps[rank_].emplace_back(std::move(step));
}

void Unroller::group(const Op& op) {
  std::vector<ConcreteTransfer> transfers;
  for (const Transfer& one : op.transfers) {
    const uint32_t other = peer(one.peer, one.at, false);
    const Mover mover = one.mover == Mover::automatic ? settings_.automatic : one.mover;
    transfers.push_back({one.is_send, box(one.view, one.at), other, one.tag, mover, 0, one.at});
  }
  step(StepKind::group, op).transfers = std::move(transfers);
  const uint32_t position = uint32_t(made_.steps[rank_].size() - 1);
  if (op.kind != OpKind::group) {  // send and recv are waited for at once
    step(StepKind::wait, op).token = position;
    return;
  }
  token(op, position);
}

void Unroller::token(const Op& op, uint32_t position) {
  const auto key = std::pair(op.token, number(op.index, op.at, "index"));
  if (s_.exprs[op.index].kind != ExprKind::constant) indexed_.insert(op.token);
  if (!tokens_.emplace(key, position).second) {
    say("tokens", op.at,
        fmt::format("{} is made again on {} before it was waited for", token_words(key.first, key.second),
                    here()));
    throw Stop{};
  }
}

void Unroller::wait(const Op& op) {
  const int64_t index = number(op.index, op.at, "index");
  if (s_.exprs[op.index].kind != ExprKind::constant) indexed_.insert(op.token);
  const auto known = tokens_.find({op.token, index});
  if (known == tokens_.end()) {
    say("tokens", op.at,
        fmt::format("{} is waited for on {}, but nothing has made it since the last wait",
                    token_words(op.token, index), here()));
    throw Stop{};
  }
  step(StepKind::wait, op).token = known->second;
  tokens_.erase(known);
}

void Unroller::flag(const Op& op) {
  const bool posts = op.kind == OpKind::post;
  const uint32_t other = peer(op.peer, op.at, false);
  const int64_t index = number(op.index, op.at, "index");
  const uint32_t poster = posts ? rank_ : other, taker = posts ? other : rank_;
  const auto [known, is_new] =
      flags_.emplace(std::tuple(op.flag, index, poster, taker), uint32_t(made_.flags.size()));
  const Flag& flag = s_.flags[op.flag];
  if (is_new)
    made_.flags.push_back({ConcreteFlag::Use::author, flag.kind, poster, taker,
                           fmt::format("{}[{}]", flag.name, index), op.at});
  Step& made = step(posts ? StepKind::post : StepKind::take, op);
  made.flag = known->second;
  made.peer = other;
}

void Unroller::loop(const Op& op) {
  const int64_t lo = number(op.lo, op.at, "bound"), hi = number(op.hi, op.at, "bound");
  if (hi > lo && uint64_t(hi) - uint64_t(lo) > most_steps) {
    say("bounds", op.at,
        fmt::format("this loop has {} turns, expected at most {}", uint64_t(hi) - uint64_t(lo), most_steps));
    throw Stop{};
  }
  if (hi > lo) turns_ += uint64_t(hi) - uint64_t(lo);
  if (turns_ > most_turns) {
    say("bounds", op.at,
        fmt::format(
            "with the {} turns of this loop on {} all loops of all ranks have {}, expected at most {}",
            uint64_t(hi) - uint64_t(lo), here(), turns_, most_turns));
    throw Stop{};
  }
  const auto outer = values_.find(op.name);
  if (outer != values_.end()) {
    say("bounds", op.at, fmt::format("the variable '{}' has a value already", op.name),
        "give it another name");
    throw Stop{};
  }
  for (int64_t turn = lo; turn < hi; ++turn) {
    values_[op.name] = turn;
    turn_.emplace_back(op.name, turn);
    ops(op.body);
    turn_.pop_back();
  }
  values_.erase(op.name);
}

void Unroller::op(const Op& op) {
  switch (op.kind) {
    case OpKind::alloc:
    case OpKind::free_:
      return storage(op);
    case OpKind::share:
    case OpKind::compute:
      return;  // done once, when the schedule is bound
    case OpKind::copy:
      step(StepKind::copy, op);
      return;
    case OpKind::fill: {
      const int64_t value = number(op.value, op.at, "value");
      Step& made = step(StepKind::fill, op);
      made.value = value;
      made.built_in = true;
      return;
    }
    case OpKind::send:
    case OpKind::recv:
    case OpKind::group:
      return group(op);
    case OpKind::wait:
      return wait(op);
    case OpKind::collective: {
      const uint32_t root = peer(op.peer, op.at, true);
      Step& made = step(StepKind::mark, op);
      const uint32_t position = uint32_t(made_.steps[rank_].size() - 1);
      collectives_.push_back({rank_, position, op.name, made.writes[0], made.reads[0], root, op.reduce});
      made.name = op.name;
      return token(op, position);
    }
    case OpKind::launch:
      step(StepKind::launch, op).name = op.name;
      return;
    case OpKind::call: {
      std::map<std::string, int64_t> attributes;
      for (const auto& [name, value] : op.attributes) attributes[name] = number(value, op.at, "attribute");
      Step& made = step(StepKind::call, op);
      made.name = op.name;
      made.attributes = std::move(attributes);
      return;
    }
    case OpKind::after:
    case OpKind::join: {
      std::vector<uint32_t> others;
      for (const Stream& other : op.streams) others.push_back(stream(other, op.at));
      step(StepKind::after, op).streams = std::move(others);
      return;
    }
    case OpKind::fork:
      for (const Stream& other : op.streams) {
        const uint32_t to = stream(other, op.at), from = stream(op.stream, op.at);
        Step& made = step(StepKind::after, op);
        made.stream = to;
        made.streams = {from};
      }
      return;
    case OpKind::for_:
      return loop(op);
    case OpKind::if_:
      return ops(is_true(op.value, op.at) ? op.body : op.orelse);
    case OpKind::barrier:
      step(StepKind::barrier, op);
      return;
    case OpKind::post:
    case OpKind::take:
      return flag(op);
    case OpKind::mark:
      step(StepKind::mark, op).name = op.name;
      return;
  }
}

void Unroller::ops(const std::vector<Op>& list) {
  for (const Op& one : list) op(one);
}

Concrete Unroller::all() {
  made_.ranks = settings_.ranks;
  made_.steps.resize(settings_.ranks);
  symbols();
  tensors();
  streams();
  for (rank_ = 0; rank_ < settings_.ranks; ++rank_) {
    values_["rank"] = rank_;
    tokens_.clear();
    used_.assign(s_.tensors.size(), false);
    allocated_.assign(s_.tensors.size(), false);
    alive_.assign(s_.tensors.size(), true);
    ops(s_.body);
    for (const auto& [key, position] : tokens_) {
      const Step& made = made_.steps[rank_][position];
      say("tokens", made.at,
          fmt::format("{} of {} is never waited for", token_words(key.first, key.second), where(rank_, made)),
          "this line makes the token: let the stream that uses what the transfer moves wait for it");
    }
  }
  expand_collectives(made_, collectives_, s_, settings_.automatic, out_);
  match(made_, s_, out_);
  return std::move(made_);
}

}  // namespace

bool Box::overlaps(const Box& other) const {
  if (tensor != other.tensor || !bytes || !other.bytes) return false;
  for (size_t axis = 0; axis < lo.size(); ++axis) {
    if (lo[axis] + extent[axis] <= other.lo[axis] || other.lo[axis] + other.extent[axis] <= lo[axis])
      return false;
  }
  return true;
}

const Function* function_of(const Schedule& schedule, const Step& step) {
  return step.built_in ? nullptr : schedule.find_function(step.name);
}

std::string where(uint32_t rank, const Step& step) {
  std::string text = fmt::format("rank {}", rank);
  for (const auto& [variable, value] : step.turn) text += fmt::format(", {} = {}", variable, value);
  return text;
}

std::string text(const Concrete& made, const Box& box) {
  std::string text = made.tensors[box.tensor].name + "[";
  for (size_t axis = 0; axis < box.lo.size(); ++axis)
    text += fmt::format("{}{}:{}", axis ? ", " : "", box.lo[axis], box.lo[axis] + box.extent[axis]);
  return text + "]";
}

Concrete concretise(const Schedule& schedule, const Settings& settings, Diagnostics& findings) {
  Unroller unroller(schedule, settings, findings);
  try {
    return unroller.all();
  } catch (const Stop&) {
    return {};
  }
}

}  // namespace chorale::schedule
