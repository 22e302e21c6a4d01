// Computes C = A B, with the rows of A spread over the ranks. Slices go around a ring: a rank multiplies
// what has arrived and passes it on at the same time, so it talks only to its neighbours.

#include <chorale/dsl.hpp>

namespace {
using namespace chorale::dsl;

CHORALE_PROGRAM(ring_ag_matmul, Parameters& with) {
  with.summary("All-gather around a ring and matrix product, slice by slice.");
  Schedule schedule({.name = "ring_ag_matmul", .ranks = {1, 2, 3, 4, 8}});
  const Index rank = schedule.rank(), ranks = schedule.ranks();
  const Index m = schedule.param("M", 960), k = schedule.param("K", 64), n = schedule.param("N", 32);
  const Tensor a = schedule.input("A", chorale::DType::f32, {over_ranks(ranks), m / ranks, k});
  const Tensor b = schedule.input("B", chorale::DType::f32, {k, n});
  const Tensor c = schedule.output("C", chorale::DType::f32, {over_streams(ranks), m / ranks, n});
  const Tensor gathered = schedule.temporary("G", chorale::DType::f32, {over_streams(ranks), m / ranks, k});
  const Stream main = schedule.main(), comm = schedule.stream("comm"), comp = schedule.stream("comp");

  main.fork({comm, comp});
  comm.copy(gathered[rank], a[0]);
  schedule.loop("i", 0, ranks, [&](Index i) {
    const Index here = (rank - i) % ranks, next = (rank - i - 1) % ranks;
    comp.after({comm});  // before the exchange, which brings the slice of the next turn
    schedule.when(i + 1 < ranks, [&] {
      const Token exchanged = comm.group([&](Group& group) {
        group.recv(gathered[next], (rank - 1) % ranks);
        group.send(gathered[here], (rank + 1) % ranks);
      });
      comm.wait(exchanged);
    });
    comp.call("matmul", {c[here]}, {gathered[here], b});
  });
  main.join({comm, comp});
  return schedule;
}

}  // namespace
