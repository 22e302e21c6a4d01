// This file makes the streams, loops and transfers of a layout.

#include "chorale/schedule/lower.hpp"

#include <fmt/format.h>

#include <utility>

#include "ahead.hpp"
#include "compiler/schedule/report.hpp"
#include "layout.hpp"
#include "regions.hpp"
#include "turn.hpp"

namespace chorale::schedule {
namespace {

class Lowerer {
 public:
  Lowerer(Schedule& schedule, const Lowering& options, Diagnostics& findings)
      : s_(schedule), options_(options), out_(findings), maker_(schedule) {
    // The mover determines which side can be ready ahead, so it must be chosen here.
    if (ahead() && options_.via == Mover::automatic) options_.via = Mover::ce_put;
  }

  void all() {
    check_layout(s_, out_);
    for (const Op& op : s_.body) {
      if (op.kind == OpKind::alloc) continue;
      report(out_, s_, "tags", op.at,
             fmt::format("'{}' belongs to the explicit form, but the schedule also has a layout",
                         info(op.kind).name),
             "write the schedule in one form: the compiler makes the streams of a layout");
    }
    if (ahead() && options_.via != Mover::ce_put && options_.via != Mover::ce_get)
      report(out_, s_, "tags", s_.layout[0].at,
             fmt::format("the stream style ahead needs copy engines, but the transfers are via {}",
                         mover_names[size_t(options_.via)]),
             "use via ce_put or ce_get, or the style split");
    if (pools() && s_.pool == Expr{})
      report(out_, s_, "tags", s_.layout[0].at,
             fmt::format("the stream style {} needs pool streams, but the schedule has none",
                         stream_style_names[size_t(options_.style)]),
             "give it some, as in .pool = 4, or use the style split");
    if (!out_.empty()) return;
    std::vector<Item> items = reshard(s_, options_, out_);
    if (!out_.empty()) return;
    s_.layout.clear();
    for (const Item& item : items) s_.layout.push_back(item.op);
    s_.body.clear();
    s_.streams.clear();
    if (!pools()) s_.pool = Expr{};  // pool streams are created even if nothing uses them
    for (uint32_t k = 0; k < s_.tensors.size(); ++k) {
      if (s_.tensors[k].role != Role::temp) continue;
      Op& op = s_.body.emplace_back();
      op.kind = OpKind::alloc;
      op.writes = {{k, {}}};
      op.at = s_.tensors[k].at;
    }
    for (const Region& region : regions(std::move(items))) region.loops ? loop(region) : alone(region);
    s_.made_with = {{"form", std::string(form_names[size_t(options_.form)])},
                    {"order", std::string(order_names[size_t(options_.order.value_or(Order::rotated))])},
                    {"style", std::string(stream_style_names[size_t(options_.style)])}};
    if (options_.reshard != Reshard::before)
      s_.made_with["reshard"] = reshard_names[size_t(options_.reshard)];
    if (options_.via != Mover::automatic) s_.made_with["via"] = mover_names[size_t(options_.via)];
  }

 private:
  bool ahead() const { return options_.style == StreamStyle::ahead; }
  bool pools() const { return options_.style == StreamStyle::pool || options_.style == StreamStyle::chained; }

  /// Lowers a region without slices, in which nothing can overlap.
  void alone(const Region& region) {
    for (const Item* item : region.items()) maker_.item(s_.body, *item, {}, Stream{}, {});
  }

  Order order_of(const Region& region) {
    const Order wanted = options_.order.value_or(Order::rotated);
    for (const Item* item : region.items()) {
      const bool together = item->action == Action::collective ||
                            (item->action == Action::gather && gathers_by_broadcast(options_.form));
      if (together && options_.order && wanted != Order::linear)
        report(
            out_, s_, "tags", item->op.at,
            fmt::format("in a turn all ranks take part in one {}, so their slices cannot be in the order {}",
                        item->action == Action::gather ? "broadcast" : item->collective,
                        order_names[size_t(wanted)]),
            "use the order linear, or the form p2p");
      if (together && ahead())
        report(out_, s_, "tags", item->op.at,
               fmt::format("the stream style ahead needs transfers between pairs, but here all ranks take "
                           "part in one {}",
                           item->action == Action::gather ? "broadcast" : item->collective),
               "use the style split, or a form and axes by which slices travel between pairs");
      if (together) return Order::linear;
      if (ahead() && wanted == Order::ring && item->action != Action::compute)
        report(
            out_, s_, "tags", item->op.at,
            "around a ring each turn sends what the turn before it has received, so no credit can be posted "
            "ahead",
            "use the order rotated or linear, or the style split");
      if (item->action == Action::exchange && wanted == Order::ring)
        report(out_, s_, "tags", item->op.at,
               "around a ring slices are passed on, but here each slice goes to only one rank",
               "use the order rotated or linear");
    }
    const bool travels =
        region.has(Action::gather) || region.has(Action::exchange) || region.has(Action::ring_sum);
    return travels ? wanted : Order::linear;
  }

  /// Returns the options of a region. If all ranks take part in some operation of each turn, they process the
  /// slices together. Transfers between pairs would then wait for each other, because the two ends reach the
  /// transfer in different turns.
  Lowering of(const Region& region) const {
    Lowering options = options_;
    if (region.has(Action::collective) && !gathers_by_broadcast(options.form)) options.form = Form::broadcast;
    return options;
  }

  void loop(const Region& region) {
    const Slices slices(s_.exprs, order_of(region), !region.leaving.empty(), region.turns);
    const bool transfers = !region.arriving.empty() || !region.leaving.empty();
    if (pools()) {
      pool(region, slices);
    } else if (ahead() && transfers) {
      if (out_.empty()) lower_ahead(s_, maker_, region, slices, options_);
    } else {
      split(region, slices);
    }
  }

  static void add(std::vector<Op>& body, OpKind kind, Stream stream, std::vector<Stream> others,
                  uint32_t at) {
    schedule::add(body, kind, stream, at).streams = std::move(others);
  }

  /// Lowers a region to two streams. One does the transfers in order, the other computes.
  void split(const Region& region, const Slices& slices) {
    const Lowering options = of(region);
    std::vector<Stream> streams;
    const bool transfers = !region.arriving.empty() || !region.leaving.empty();
    const Stream comm = transfers ? named_stream(s_, "comm") : Stream{},
                 comp = region.computing.empty() ? Stream{} : named_stream(s_, "comp");
    if (transfers) streams.push_back(comm);
    if (!region.computing.empty()) streams.push_back(comp);
    add(s_.body, OpKind::fork, {}, streams, region.at);
    Op turn = loop_over(s_.exprs, region.turns, region.at);
    for (const Item& item : region.arriving) maker_.item(turn.body, item, slices, comm, options);
    if (!region.arriving.empty() && !region.computing.empty())
      add(turn.body, OpKind::after, comp, {comm}, region.computing[0].op.at);
    for (const Item& item : region.computing) maker_.item(turn.body, item, slices, comp, options);
    const bool rings = region.has(Action::ring_sum);  // they send slices of the turn before
    if (!region.leaving.empty() && !region.computing.empty() && !rings)
      add(turn.body, OpKind::after, comm, {comp}, region.leaving[0].op.at);
    for (const Item& item : region.leaving) {
      if (item.action == Action::ring_sum && !region.computing.empty()) {
        maker_.ring_sum(turn.body, item, slices, {comm, comm, comp}, options);
      } else {
        maker_.item(turn.body, item, slices, comm, options);
      }
    }
    s_.body.push_back(std::move(turn));
    add(s_.body, OpKind::join, {}, streams, region.at);
  }

  /// Puts turn i on pool stream i % streams. The fork needs a separate loop. With fork and join in one body,
  /// each turn would wait for the one before it.
  void pool(const Region& region, const Slices& slices) {
    const Lowering options = of(region);
    Exprs& exprs = s_.exprs;
    const Expr turn_index = exprs.symbol(loop_variable), streams = exprs.symbol("lanes"),
               one = exprs.constant(1);
    const auto stream_of = [&](Expr turn) {
      return Stream{
          .kind = Stream::Kind::pool, .index = exprs.binary(ExprKind::mod, turn, streams), .name = 0};
    };
    const Stream stream = stream_of(turn_index);
    Op forks = loop_over(s_.exprs, region.turns, region.at);
    add(forks.body, OpKind::after, stream, {Stream{}}, region.at);
    s_.body.push_back(std::move(forks));

    // In a ring, a turn sends what the turn before it has received.
    const bool in_order = options_.style == StreamStyle::chained || slices.order == Order::ring;
    Op turn = loop_over(s_.exprs, region.turns, region.at);
    const auto when = [&](Expr condition, Stream waits, Stream on, uint32_t at) {
      Op op;
      op.kind = OpKind::if_;
      op.at = at;
      op.value = condition;
      add(op.body, OpKind::after, waits, {on}, at);
      turn.body.push_back(std::move(op));
    };
    for (const Item& item : region.arriving) maker_.item(turn.body, item, slices, stream, options);
    // This wait of the next turn's stream is enqueued before the compute, so that the next turn's transfers
    // do not wait for the compute.
    if (in_order && !region.arriving.empty()) {
      const Expr next = exprs.binary(ExprKind::add, turn_index, one);
      when(exprs.binary(ExprKind::less, next, region.turns), stream_of(next), stream,
           region.arriving.back().op.at);
    }
    for (const Item& item : region.computing) maker_.item(turn.body, item, slices, stream, options);
    const Stream last = stream_of(exprs.binary(ExprKind::sub, turn_index, one));
    if (in_order && !region.leaving.empty() && !region.has(Action::ring_sum))
      when(exprs.binary(ExprKind::less, exprs.constant(0), turn_index), stream, last,
           region.leaving[0].op.at);
    for (const Item& item : region.leaving) {
      if (item.action == Action::ring_sum) {
        maker_.ring_sum(turn.body, item, slices, {last, stream, stream}, options);
      } else {
        maker_.item(turn.body, item, slices, stream, options);
      }
    }
    add(turn.body, OpKind::after, {}, {stream}, region.at);
    s_.body.push_back(std::move(turn));
  }

  Schedule& s_;
  Lowering options_;
  Diagnostics& out_;
  TurnMaker maker_;
};

}  // namespace

void lower(Schedule& schedule, const Lowering& options, Diagnostics& findings) {
  if (schedule.layout.empty()) return;
  Lowerer(schedule, options, findings).all();
}

}  // namespace chorale::schedule
