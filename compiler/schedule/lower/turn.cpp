#include "turn.hpp"

#include <utility>

#include "chorale/schedule/collective.hpp"

namespace chorale::schedule {

Slices::Slices(Exprs& exprs, Order order, bool own_last, Expr turns)
    : order(order), turn(exprs.symbol(loop_variable)) {
  const Expr rank = exprs.symbol("rank"), ranks = exprs.symbol("ranks"), one = exprs.constant(1);
  const auto around = [&](ExprKind kind, Expr left, Expr right) {
    return exprs.binary(ExprKind::mod, exprs.binary(kind, left, right), ranks);
  };
  const auto plus_one = [&](Expr expr) { return exprs.binary(ExprKind::add, expr, one); };
  if (order == Order::linear) {
    here = back = turn;
    is_own = exprs.binary(ExprKind::equal, turn, rank);
    return;
  }
  const Expr distance = own_last ? plus_one(turn) : turn;
  if (order == Order::ring) {
    here = around(ExprKind::sub, rank, distance);
    handed_on = own_last ? around(ExprKind::sub, rank, turn) : around(ExprKind::sub, plus_one(rank), turn);
  } else {
    here = around(ExprKind::add, rank, distance);
    back = around(ExprKind::sub, rank, distance);
  }
  is_own = own_last ? exprs.binary(ExprKind::equal, plus_one(turn), turns)
                    : exprs.binary(ExprKind::equal, turn, exprs.constant(0));
}

Op& add(std::vector<Op>& body, OpKind kind, Stream stream, uint32_t at) {
  Op& op = body.emplace_back();
  op.kind = kind;
  op.stream = stream;
  op.at = at;
  return op;
}

Op loop_over(Exprs& exprs, Expr turns, uint32_t at) {
  Op op;
  op.kind = OpKind::for_;
  op.at = at;
  op.name = loop_variable;
  op.lo = exprs.constant(0);
  op.hi = turns;
  return op;
}

Stream named_stream(Schedule& schedule, std::string_view name) {
  std::vector<std::string>& streams = schedule.streams;
  uint32_t position = 0;
  while (position < streams.size() && streams[position] != name) ++position;
  if (position == streams.size()) streams.emplace_back(name);
  return {.kind = Stream::Kind::named, .index = {}, .name = position};
}

/// Returns the part of a tensor that a turn uses. `axes` holds, for each axis of the tensor, the axis of the
/// result.
View TurnMaker::part(const Item& item, const View& whole, const std::vector<int>& axes, int sliced,
                     Expr slice) const {
  const Tensor &tensor = s_.tensors[whole.tensor], &result = s_.tensors[item.op.writes[0].tensor];
  Exprs& exprs = s_.exprs;
  View view = whole;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    const int there = axes[axis];
    const bool one = is_one(s_, tensor.axes[axis].extent);
    Expr index = exprs.constant(0);
    if (tensor.axes[axis].tag != Tag::ranks) {
      if (int(axis) == sliced) {
        if (!one) index = slice;
      } else if (there == no_axis || item.action != Action::compute) {
        continue;
      } else if (result.axes[size_t(there)].tag == Tag::ranks) {
        if (!one) index = exprs.symbol("rank");
      } else if (!one || is_one(s_, result.axes[size_t(there)].extent) || !is_product(item.op) ||
                 is_matrix_axis(s_, item.op, there)) {
        continue;
      }
    }
    Select select{.axis = uint8_t(axis), .lo = index, .len = {}};
    // Products are defined on matrices, so an axis stays even if there is only one row.
    if (there != no_axis && is_matrix_axis(s_, item.op, there)) select.len = exprs.constant(1);
    view.selects.push_back(select);
  }
  return view;
}

View TurnMaker::result(const Item& item, Expr slice) const {
  std::vector<int> axes;
  for (size_t axis = 0; axis < s_.tensors[item.op.writes[0].tensor].axes.size(); ++axis)
    axes.push_back(int(axis));
  return part(item, item.op.writes[0], axes, item.sliced, slice);
}

View TurnMaker::operand(const Item& item, size_t k, Expr slice) const {
  return part(item, item.op.reads[k], item.axes[k], item.sliced_of_operand[k], slice);
}

void TurnMaker::item(std::vector<Op>& body, const Item& item, const Slices& slices, Stream stream,
                     const Lowering& options) {
  switch (item.action) {
    case Action::compute:
      return compute(body, item, slices, stream);
    case Action::gather:
      if (gathers_by_broadcast(options.form))
        return collective(body, item, "broadcast", result(item, slices.here), operand(item, 0, {}),
                          slices.turn, stream);
      return pairwise(body, item, slices, stream, options);
    case Action::exchange:
      return pairwise(body, item, slices, stream, options);
    case Action::ring_sum:
      return ring_sum(body, item, slices, {stream, stream, stream}, options);
    case Action::collective:
      return collective(body, item, item.collective, result(item, slices.here), operand(item, 0, slices.here),
                        collective_row(item.collective).has_root() ? slices.turn : Expr{}, stream);
  }
}

void TurnMaker::compute(std::vector<Op>& body, const Item& item, const Slices& slices, Stream stream) {
  const bool is_set = item.op.name == "set";
  Op op = item.op;
  op.kind = is_set ? OpKind::copy : OpKind::call;
  op.stream = stream;
  op.writes = {result(item, slices.here)};
  for (size_t k = 0; k < op.reads.size(); ++k) op.reads[k] = operand(item, k, slices.here);
  if (op.name == "sum") {
    // Functions do not count axes that are selected away.
    const int64_t axis = evaluate(s_.exprs, op.attributes["axis"], {}).value;
    int64_t gone = 0;
    for (const Select& select : op.reads[0].selects) gone += select.axis < axis && !select.len;
    op.attributes["axis"] = s_.exprs.constant(axis - gone);
  }
  if (is_set) op.name.clear();
  body.push_back(std::move(op));
}

Ends TurnMaker::ends(const Item& item, const Slices& slices, const Lowering& options) const {
  Ends ends = item.action == Action::gather ? gather(item, slices, options) : exchange(item, slices, options);
  ends.own.kind = OpKind::copy;
  ends.own.at = item.op.at;
  return ends;
}

void TurnMaker::pairwise(std::vector<Op>& body, const Item& item, const Slices& slices, Stream stream,
                         const Lowering& options) {
  Ends ends = this->ends(item, slices, options);
  ends.own.stream = stream;
  Op op;
  op.kind = OpKind::if_;
  op.at = item.op.at;
  op.value = slices.is_own;
  op.body.push_back(std::move(ends.own));
  Op& group = add(op.orelse, OpKind::group, stream, op.at);
  group.token = new_token();
  group.transfers = {std::move(ends.recv), std::move(ends.send)};
  add(op.orelse, OpKind::wait, stream, op.at).token = tokens_;
  body.push_back(std::move(op));
}

namespace {

/// Returns a neighbour in the ring.
Expr neighbour(Exprs& exprs, ExprKind kind) {
  const Expr rank = exprs.symbol("rank"), one = exprs.constant(1);
  return exprs.binary(ExprKind::mod, exprs.binary(kind, rank, one), exprs.symbol("ranks"));
}

Op& add_if(std::vector<Op>& body, Expr condition, uint32_t at) {
  Op& op = add(body, OpKind::if_, {}, at);
  op.value = condition;
  return op;
}

}  // namespace

/// Slice s begins at rank s + 1. Each rank adds its own addend. Rank s gets the sum in its last turn.
void TurnMaker::ring_sum(std::vector<Op>& body, const Item& item, const Slices& slices, const RingStreams& on,
                         const Lowering& options) {
  Exprs& exprs = s_.exprs;
  const uint32_t at = item.op.at;
  const uint8_t axis = uint8_t(tagged(s_.tensors[item.sums], Tag::streams));
  const auto sum_of = [&](Expr slice) {
    return View{item.sums, {Select{.axis = axis, .lo = slice, .len = {}}}};
  };
  const auto is_turn = [&](int64_t number) {
    return exprs.binary(ExprKind::equal, slices.turn, exprs.constant(number));
  };
  const auto after = [&](std::vector<Op>& in, const Stream& other) {
    if (!(other == on.adds)) add(in, OpKind::after, on.adds, at).streams = {other};
  };
  const View mine = operand(item, 0, slices.here), sum = sum_of(slices.here),
             whole = result(item, slices.here);

  Op& first = add_if(body, is_turn(0), at);
  std::vector<Op> next;
  after(first.body, on.computes);
  Op& copy = add(add_if(first.body, slices.is_own, at).body, OpKind::copy, on.adds, at);  // on one rank only
  copy.writes = {whole};
  copy.reads = {mine};

  const auto hand_on = [&](std::vector<Op>& in, const View& sent) {
    Op& group = add(in, OpKind::group, on.moves, at);
    group.token = new_token();
    group.transfers = {{false, sum, neighbour(exprs, ExprKind::sub), 0, options.via, at},
                       {true, sent, neighbour(exprs, ExprKind::add), 0, options.via, at}};
    add(in, OpKind::wait, on.moves, at).token = tokens_;
  };
  Op& second = add_if(next, is_turn(1), at);
  hand_on(second.body, operand(item, 0, slices.handed_on));
  hand_on(second.orelse, sum_of(slices.handed_on));
  after(next, on.moves);
  if (!(on.computes == on.moves)) after(next, on.computes);
  Op& last = add_if(next, slices.is_own, at);
  for (const auto& [to, in] : {std::pair(&whole, &last.body), {&sum, &last.orelse}}) {
    Op& op = add(*in, OpKind::call, on.adds, at);
    op.name = "add";
    op.writes = {*to};
    op.reads = {mine, sum};
  }
  body.back().orelse = std::move(next);
}

Ends TurnMaker::gather(const Item& item, const Slices& slices, const Lowering& options) const {
  Exprs& exprs = s_.exprs;
  Op own;
  own.writes = {result(item, slices.here)};
  own.reads = {operand(item, 0, {})};
  Transfer recv{false, own.writes[0], slices.here, 0, options.via, item.op.at};
  Transfer send{true, item.op.reads[0], slices.back, 0, options.via, item.op.at};
  if (slices.order == Order::ring) {
    recv.peer = neighbour(exprs, ExprKind::sub);
    send.peer = neighbour(exprs, ExprKind::add);
    send.view = result(item, slices.handed_on);
  }
  return {std::move(own), std::move(recv), std::move(send)};
}

Ends TurnMaker::exchange(const Item& item, const Slices& slices, const Lowering& options) const {
  Transfer recv{false, result(item, slices.back), slices.back, 0, options.via, item.op.at};
  Transfer send{true, operand(item, 0, slices.here), slices.here, 0, options.via, item.op.at};
  Op own;
  own.writes = {recv.view};  // in this turn, both slices belong to the rank
  own.reads = {send.view};
  return {std::move(own), std::move(recv), std::move(send)};
}

void TurnMaker::collective(std::vector<Op>& body, const Item& item, std::string_view kind, View dst, View src,
                           Expr root, Stream stream) {
  Op& op = add(body, OpKind::collective, stream, item.op.at);
  op.token = new_token();
  op.name = kind;
  op.writes = {std::move(dst)};
  op.reads = {std::move(src)};
  op.peer = root;
  add(body, OpKind::wait, stream, item.op.at).token = tokens_;
}

}  // namespace chorale::schedule
