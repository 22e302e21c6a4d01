// Computes C = A B, with K spread over the ranks. The thread blocks of an all-reduce add up the partial
// products of a slice of rows, while the next slice is computed.

#include <chorale/dsl.hpp>

namespace {
using namespace chorale::dsl;

CHORALE_PROGRAM(matmul_ar_launch, Parameters& with) {
  with.summary("Matrix product and all-reduce: a plan of thread blocks for each slice of rows.");
  Schedule schedule({.name = "matmul_ar_launch", .ranks = {1, 2, 3, 4, 8}});
  const Index ranks = schedule.ranks(), slices = schedule.param("S", 4);
  const Index m = schedule.param("M", 960), k = schedule.param("K", 96), n = schedule.param("N", 32);
  const chorale::DType f32 = chorale::DType::f32;
  const Tensor a = schedule.input("A", f32, {over_ranks(ranks), slices, m / slices, k / ranks});
  const Tensor b = schedule.input("B", f32, {over_ranks(ranks), k / ranks, n});
  const Tensor c = schedule.output("C", f32, {over_streams(slices), m / slices, n});
  const Tensor partial = schedule.temporary("P", f32, {slices, m / slices, n});
  const Stream main = schedule.main(), comm = schedule.stream("comm"), comp = schedule.stream("comp");

  main.fork({comm, comp});
  schedule.loop("i", 0, slices, [&](Index i) {
    comp.call("matmul", {partial[i]}, {a[0].select(1, i), b[0]});
    comm.after({comp});
    comm.launch("allreduce_two_shot", c[i], partial[i]);
  });
  main.join({comm, comp});
  return schedule;
}

}  // namespace
