#include "bench/overlap/schedules.hpp"

#include <chorale/dsl.hpp>
#include <functional>
#include <stdexcept>

namespace chorale::overlap {
namespace {

using namespace chorale::dsl;
using schedule::Mover;

constexpr int pool_streams = 4;

/// Compiles a schedule. It must have no findings, because it is part of the benchmark.
Plan plan_of(const Schedule& schedule, Halves halves = {}) {
  Compiled compiled = Program(schedule).compile();
  for (const Diagnostic& finding : compiled.diagnostics) {
    // Pools may lack overlap, because they are timed to show what that costs. A half schedule does not
    // compute the result.
    const bool half = !halves.transfers || !halves.compute;
    if (finding.check != "overlap" && !(half && finding.check == "contents"))
      throw std::logic_error(render(compiled.plan, compiled.diagnostics));
  }
  return std::move(compiled.plan);
}

ScheduleOptions options(const char* name, uint32_t ranks) {
  return {.name = name, .ranks = {ranks}, .pool = pool_streams};
}

/// Builds one schedule from the turns of a form. Each turn has a transfer and a product.
///
/// It unrolls the turns for the number of ranks, so that each transfer that begins ahead has its own token.
class Turns {
 public:
  struct Ends {
    View from, to;  ///< the send's and the receive's
    Index sends_to, receives_from;
  };
  struct Turn {
    /// True in the turn in which nothing is transferred; never true if the other turns leave it out.
    Index own;
    Ends ends;
    std::function<void(const Stream&)> compute;
  };

  Turns(Schedule& schedule, const Form& form, Halves halves)
      : s_(schedule),
        form_(form),
        halves_(halves),
        main_(schedule.main()),
        comm_(schedule.stream("comm")),
        arrive_(schedule.stream("arrive")),
        comp_(schedule.stream("comp")) {}

  bool pools() const { return form_.style == Style::pool || form_.style == Style::chained; }
  Stream stream_of(int turn) const { return s_.pool(turn % pool_streams); }

  /// Makes all streams wait for the start. `count` turns follow.
  void begin(int count) {
    if (!pools()) return main_.fork({comm_, arrive_, comp_});
    for (int turn = 0; turn < count && turn < pool_streams; ++turn) stream_of(turn).after({main_});
  }

  /// Tells peers before the first turn that they may start.
  void ahead(const std::vector<Turn>& turns) {
    if (form_.style != Style::ahead || !halves_.transfers) return;
    for (const Turn& turn : turns) {
      unless(turn.own,
             [&] { begun_.push_back(puts() ? receive(arrive_, turn.ends) : send(comm_, turn.ends)); });
    }
  }

  /// Puts each turn's transfer on its stream, and after it the turn's `compute`.
  void transfer_then_compute(const std::vector<Turn>& turns) {
    ahead(turns);
    size_t which = 0;
    for (int at = 0; at < int(turns.size()); ++at) {
      const Turn& turn = turns[size_t(at)];
      const Stream stream = pools() ? stream_of(at) : comm_;
      if (halves_.transfers) unless(turn.own, [&] { transfer(stream, turn, which++); });
      if (form_.style == Style::chained && at + 1 < int(turns.size())) stream_of(at + 1).after({stream});
      if (!halves_.compute) continue;
      if (!pools()) comp_.after({puts_ahead() || gets_ahead() ? arrive_ : comm_});
      turn.compute(pools() ? stream : comp_);
    }
  }

  /// Puts each turn's product on its stream, and after it the transfer of its result.
  void compute_then_transfer(const std::vector<Turn>& turns) {
    ahead_of_results(turns);
    size_t which = 0;
    for (int at = 0; at < int(turns.size()); ++at) {
      const Turn& turn = turns[size_t(at)];
      const Stream stream = pools() ? stream_of(at) : comm_;
      if (halves_.compute) unless(turn.own, [&] { turn.compute(pools() ? stream : comp_); });
      if (!halves_.transfers) continue;
      if (!pools()) comm_.after({comp_});
      if (form_.style == Style::chained && at > 0) stream.after({stream_of(at - 1)});
      unless(turn.own, [&] { transfer_result(stream, turn, which++); });
    }
  }

  /// Makes the main stream wait for all others.
  void end(int count) {
    for (const auto& late : late_) unless(late.first, [&] { comm_.wait(late.second); });
    if (!pools()) return main_.join({comm_, arrive_, comp_});
    for (int turn = 0; turn < count && turn < pool_streams; ++turn) main_.after({stream_of(turn)});
  }

  /// Returns the stream on which the streams join, for operations that need all transfers.
  const Stream& main() const { return main_; }

 private:
  bool puts() const { return form_.mover == Mover::ce_put; }
  bool puts_ahead() const { return form_.style == Style::ahead && puts(); }
  bool gets_ahead() const { return form_.style == Style::ahead && !puts(); }

  void unless(const Index& own, const std::function<void()>& body) {
    s_.when(
        own, [] {}, body);
  }

  Token send(const Stream& stream, const Ends& ends) const {
    return stream.group([&](Group& group) { group.send(ends.from, ends.sends_to, {.via = form_.mover}); });
  }
  Token receive(const Stream& stream, const Ends& ends) const {
    return stream.group([&](Group& group) { group.recv(ends.to, ends.receives_from, {.via = form_.mover}); });
  }

  void transfer(const Stream& stream, const Turn& turn, size_t which) {
    const Ends& ends = turn.ends;
    if (puts_ahead()) {
      stream.wait(send(stream, ends));
      arrive_.wait(begun_[which]);
    } else if (gets_ahead()) {
      arrive_.wait(receive(arrive_, ends));
      late_.emplace_back(turn.own, begun_[which]);
    } else {
      stream.wait(stream.group([&](Group& group) {
        group.recv(ends.to, ends.receives_from, {.via = form_.mover});
        group.send(ends.from, ends.sends_to, {.via = form_.mover});
      }));
    }
  }

  /// Begins ahead if transfers are puts. A rank can offer memory for a result early, but not the result
  /// itself.
  void ahead_of_results(const std::vector<Turn>& turns) {
    if (puts_ahead()) ahead(turns);
  }

  void transfer_result(const Stream& stream, const Turn& turn, size_t which) {
    if (!gets_ahead()) return transfer(stream, turn, which);
    late_.emplace_back(turn.own, send(comm_, turn.ends));
    arrive_.wait(receive(arrive_, turn.ends));
  }

  Schedule& s_;
  const Form& form_;
  const Halves halves_;
  const Stream main_, comm_, arrive_, comp_;
  std::vector<Token> begun_;                   // transfers begun ahead, by transfer
  std::vector<std::pair<Index, Token>> late_;  // sends that the end waits for
};

std::vector<Form> forms(std::initializer_list<Order> orders) {
  std::vector<Form> all;
  for (const Order order : orders) {
    for (const Style style : {Style::split, Style::ahead, Style::pool, Style::chained}) {
      // Around a ring each turn needs the transfer of the previous turn.
      if (order == Order::ring && (style == Style::ahead || style == Style::pool)) continue;
      for (const Mover mover : {Mover::ce_put, Mover::ce_get, Mover::plan}) {
        // A launch needs an exchange of all ranks. In linear order the transfers of a turn are not one. It
        // begins with both halves of an exchange, so no rank can begin ahead.
        if (mover == Mover::plan && (order == Order::linear || style == Style::ahead)) continue;
        all.push_back({order, style, mover});
      }
    }
  }
  return all;
}

}  // namespace

std::string Form::name() const {
  return std::string(order_names[size_t(order)]) + " " + style_names[size_t(style)] + " " +
         std::string(schedule::mover_names[size_t(mover)]);
}

std::vector<Form> allgather_matmul_forms() { return forms({Order::linear, Order::rotated, Order::ring}); }
std::vector<Form> matmul_reduce_scatter_forms() {
  std::vector<Form> all = forms({Order::linear, Order::rotated});
  for (const Form& form : forms({Order::ring}))
    if (form.style == Style::split) all.push_back(form);
  return all;
}

Plan allgather_matmul(uint32_t ranks, const Form& form, Halves halves) {
  Schedule schedule(options("allgather_matmul", ranks));
  const Index rank = schedule.rank(), all = schedule.ranks();
  const Index m = schedule.param("M", 64 * ranks), k = schedule.param("K", 64), n = schedule.param("N", 32);
  const Tensor a = schedule.input("A", DType::bf16, {over_ranks(all), m / all, k});
  const Tensor b = schedule.input("B", DType::bf16, {k, n});
  const Tensor g = schedule.output("G", DType::bf16, {over_streams(all), m / all, k});
  const Tensor c = schedule.output("C", DType::bf16, {over_streams(all), m / all, n});
  const Stream own = schedule.stream("own");

  std::vector<Turns::Turn> turns;
  for (int i = 0; i < int(ranks); ++i) {
    Index slice = Index(i), sends_to = Index(i), receives_from = Index(i), mine = Index(i == 0);
    View sent = a;
    if (form.order == Order::linear) mine = rank == i;
    if (form.order == Order::rotated) {
      slice = receives_from = (rank + i) % all;
      sends_to = (rank - i) % all;
    }
    if (form.order == Order::ring) {
      slice = (rank - i) % all;
      receives_from = (rank - 1) % all;
      sends_to = (rank + 1) % all;
      if (i > 1) sent = g[(rank + 1 - i) % all];
    }
    turns.push_back({mine, {sent, g[slice], sends_to, receives_from}, [=, &schedule](const Stream& stream) {
                       // A rank's own slice stays in place.
                       schedule.when(
                           mine,
                           [&] {
                             stream.call("matmul", {c[slice]}, {a[0], b});
                           },
                           [&] {
                             stream.call("matmul", {c[slice]}, {g[slice], b});
                           });
                     }});
  }
  Turns streams(schedule, form, halves);
  streams.begin(int(ranks));
  if (halves.transfers) {
    streams.main().fork({own});
    own.copy(g[rank], a[0]);
  }
  streams.transfer_then_compute(turns);
  streams.end(int(ranks));
  if (halves.transfers) streams.main().join({own});
  return plan_of(schedule, halves);
}

namespace {

/// Holds the tensors of a product that is reduced and scattered.
struct Sums {
  Tensor a, b, c;
  Tensor partial, addends;  ///< for each slice: this rank's product, and the products that arrive
};

/// Sends sums around a ring. Each rank adds its product to the sum that it has received. It computes that
/// product while the sum is being transferred.
void sum_around_ring(Schedule& schedule, const Sums& of, int ranks, Mover mover) {
  const Index rank = schedule.rank(), all = schedule.ranks();
  const Stream comm = schedule.stream("comm"), comp = schedule.stream("comp"), main = schedule.main();
  main.fork({comm, comp});
  for (int turn = 0; turn < ranks; ++turn) {
    const Index slice = (rank - 1 - turn) % all;
    const bool first = turn == 0, last = turn + 1 == ranks;
    comp.call("matmul", {first && last ? of.c[0] : of.partial[slice]}, {of.a[0].select(1, slice), of.b[0]});
    if (!first) {
      comp.after({comm});
      comp.call("add", {last ? of.c[0] : of.partial[slice]}, {of.partial[slice], of.addends[slice]});
    }
    if (last) break;
    comm.after({comp});
    comm.wait(comm.group([&](Group& group) {
      group.recv(of.addends[(rank - 2 - turn) % all], (rank - 1) % all, {.via = mover});
      group.send(of.partial[slice], (rank + 1) % all, {.via = mover});
    }));
  }
  main.join({comm, comp});
}

}  // namespace

Plan matmul_reduce_scatter(uint32_t ranks, const Form& form, Halves halves) {
  Schedule schedule(options("matmul_reduce_scatter", ranks));
  const Index rank = schedule.rank(), all = schedule.ranks();
  const Index m = schedule.param("M", 64 * ranks), k = schedule.param("K", 64 * ranks),
              n = schedule.param("N", 32);
  const Tensor a = schedule.input("A", DType::bf16, {over_ranks(all), all, m / all, k / all});
  const Tensor b = schedule.input("B", DType::bf16, {over_ranks(all), k / all, n});
  const Tensor c = schedule.output("C", DType::bf16, {over_ranks(all), m / all, n});
  const Tensor partial = schedule.temporary("P", DType::bf16, {all, m / all, n}, true);
  const Tensor addends = schedule.temporary("R", DType::bf16, {all, m / all, n}, true);
  if (form.order == Order::ring) {
    sum_around_ring(schedule, {a, b, c, partial, addends}, int(ranks), form.mover);
    return plan_of(schedule);
  }

  std::vector<Turns::Turn> turns;
  const bool linear = form.order == Order::linear;
  for (int i = linear ? 0 : 1; i < int(ranks); ++i) {
    const Index to = linear ? Index(i) : (rank + i) % all, from = linear ? Index(i) : (rank - i) % all;
    turns.push_back(
        {linear ? rank == i : Index(0), {partial[to], addends[from], to, from}, [=](const Stream& stream) {
           stream.call("matmul", {partial[to]}, {a[0].select(1, to), b[0]});
         }});
  }
  Turns streams(schedule, form, halves);
  streams.begin(int(turns.size()));
  streams.compute_then_transfer(turns);
  // A rank's own rows come last, because the others' rows must be transferred.
  const Stream last = streams.pools() ? streams.main() : schedule.stream("comp");
  if (halves.compute) last.call("matmul", {addends[rank]}, {a[0].select(1, rank), b[0]});
  streams.end(int(turns.size()));
  if (halves.compute && halves.transfers) streams.main().call("sum", {c[0]}, {addends}, {{"axis", 0}});
  return plan_of(schedule, halves);
}

Plan product(uint32_t ranks) {
  Schedule schedule(options("product", ranks));
  const Index m = schedule.param("M", 64), k = schedule.param("K", 64), n = schedule.param("N", 32);
  const Tensor a = schedule.input("A", DType::bf16, {m, k}), b = schedule.input("B", DType::bf16, {k, n});
  const Tensor c = schedule.output("C", DType::bf16, {m, n});
  schedule.main().call("matmul", {c}, {a, b});
  return plan_of(schedule);
}

Plan sum(uint32_t ranks) {
  Schedule schedule(options("sum", ranks));
  const Index m = schedule.param("M", 64), n = schedule.param("N", 32);
  const Tensor r = schedule.input("R", DType::bf16, {schedule.ranks(), m, n});
  const Tensor c = schedule.output("C", DType::bf16, {m, n});
  schedule.main().call("sum", {c}, {r}, {{"axis", 0}});
  return plan_of(schedule);
}

}  // namespace chorale::overlap
