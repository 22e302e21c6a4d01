// Computes C = A B, with the rows of A over the ranks. Each slice is multiplied when it arrives, while the
// next ones travel. In turn i a rank gets the slice of rank - i, so no two ranks ask the same one.

#include <chorale/dsl.hpp>
#include <stdexcept>

namespace {
using namespace chorale::dsl;

CHORALE_PROGRAM(ag_matmul_p2p, Parameters& with) {
  with.summary("All-gather and matrix product, slice by slice: one stream transfers in order, one computes.");
  const std::string order = with("order", "rotated", "order of the slices: rotated, or linear as in nvFuser");
  if (order != "rotated" && order != "linear")
    throw std::invalid_argument("parameter 'order' is '" + order + "', but must be rotated or linear");
  Schedule schedule({.name = "ag_matmul_p2p", .ranks = {1, 2, 3, 4, 8}});
  const Index rank = schedule.rank(), ranks = schedule.ranks();
  const Index m = schedule.param("M", 960), k = schedule.param("K", 64), n = schedule.param("N", 32);
  const Tensor a = schedule.input("A", chorale::DType::f32, {over_ranks(ranks), m / ranks, k});
  const Tensor b = schedule.input("B", chorale::DType::f32, {k, n});
  const Tensor c = schedule.output("C", chorale::DType::f32, {over_streams(ranks), m / ranks, n});
  const Tensor gathered = schedule.temporary("G", chorale::DType::f32, {over_streams(ranks), m / ranks, k});
  const Stream main = schedule.main(), comm = schedule.stream("comm"), comp = schedule.stream("comp");

  main.fork({comm, comp});
  schedule.loop("i", 0, ranks, [&](Index i) {
    const bool rotated = order == "rotated";
    const Index from = rotated ? (rank + i) % ranks : i, to = rotated ? (rank - i) % ranks : i;
    schedule.when(
        from == rank, [&] { comm.copy(gathered[from], a[0]); },
        [&] {
          const Token exchanged = comm.group([&](Group& group) {
            group.recv(gathered[from], from);
            group.send(a, to);
          });
          comm.wait(exchanged);
        });
    comp.after({comm});
    comp.call("matmul", {c[from]}, {gathered[from], b});
  });
  main.join({comm, comp});
  return schedule;
}

}  // namespace
