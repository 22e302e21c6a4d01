// Computes C = A B, with K and the rows of C spread over the ranks. A rank multiplies its part of K for
// one slice of rows after the other. It sends each partial product to the rank that owns the slice, which
// adds them up in rank order.

#include <chorale/dsl.hpp>

namespace {
using namespace chorale::dsl;

CHORALE_PROGRAM(matmul_rs, Parameters& with) {
  with.summary("Matrix product and reduce-scatter: partial products travel while the next are computed.");
  Schedule schedule({.name = "matmul_rs", .ranks = {1, 2, 3, 4, 8}});
  const Index rank = schedule.rank(), ranks = schedule.ranks();
  const Index m = schedule.param("M", 960), k = schedule.param("K", 96), n = schedule.param("N", 32);
  const chorale::DType f32 = chorale::DType::f32;
  const Tensor a = schedule.input("A", f32, {over_ranks(ranks), ranks, m / ranks, k / ranks});
  const Tensor b = schedule.input("B", f32, {over_ranks(ranks), k / ranks, n});
  const Tensor c = schedule.output("C", f32, {over_ranks(ranks), m / ranks, n});
  const Tensor partial = schedule.temporary("P", f32, {ranks, m / ranks, n});  // my addends, by slice of rows
  const Tensor addends = schedule.temporary("R", f32, {ranks, m / ranks, n});  // addends of my rows, by rank
  const Stream main = schedule.main(), comm = schedule.stream("comm"), comp = schedule.stream("comp");

  main.fork({comm, comp});
  // A rank's own rows come last, because those of others must travel.
  schedule.loop("i", 1, ranks, [&](Index i) {
    const Index to = (rank + i) % ranks, from = (rank - i) % ranks;
    comp.call("matmul", {partial[to]}, {a[0].select(1, to), b[0]});
    comm.after({comp});
    const Token exchanged = comm.group([&](Group& group) {
      group.recv(addends[from], from);
      group.send(partial[to], to);
    });
    comm.wait(exchanged);
  });
  comp.call("matmul", {addends[rank]}, {a[0].select(1, rank), b[0]});
  comp.after({comm});
  comp.call("sum", {c[0]}, {addends}, {{"axis", 0}});
  main.join({comm, comp});
  return schedule;
}

}  // namespace
