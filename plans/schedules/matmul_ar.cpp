// Computes C = A B as matmul_rs, with K over the ranks. Then every rank sends its rows to all others.

#include <chorale/dsl.hpp>

namespace {
using namespace chorale::dsl;

CHORALE_PROGRAM(matmul_ar, Parameters& with) {
  with.summary("Matrix product and all-reduce: partial products travel while the next are computed.");
  Schedule schedule({.name = "matmul_ar", .ranks = {1, 2, 3, 4, 8}});
  const Index rank = schedule.rank(), ranks = schedule.ranks();
  const Index m = schedule.param("M", 960), k = schedule.param("K", 96), n = schedule.param("N", 32);
  const chorale::DType f32 = chorale::DType::f32;
  const Tensor a = schedule.input("A", f32, {over_ranks(ranks), ranks, m / ranks, k / ranks});
  const Tensor b = schedule.input("B", f32, {over_ranks(ranks), k / ranks, n});
  const Tensor c = schedule.output("C", f32, {over_streams(ranks), m / ranks, n});
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
  comp.call("sum", {c[rank]}, {addends}, {{"axis", 0}});
  comm.after({comp});
  schedule.loop("j", 1, ranks, [&](Index j) {
    const Index from = (rank + j) % ranks, to = (rank - j) % ranks;
    const Token exchanged = comm.group([&](Group& group) {
      group.recv(c[from], from, {.tag = 1});
      group.send(c[rank], to, {.tag = 1});
    });
    comm.wait(exchanged);
  });
  main.join({comm, comp});
  return schedule;
}

}  // namespace
