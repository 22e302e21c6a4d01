// This is the product of ag_matmul_p2p as a layout. The rows of A are over the ranks, each rank needs all
// rows of C. The compiler finds the transfers of A, and overlaps them with the slices of C.

#include <chorale/dsl.hpp>

namespace {
using namespace chorale::dsl;

CHORALE_PROGRAM(ag_matmul_layout, Parameters& with) {
  with.summary("All-gather and matrix product, as a layout.");
  Schedule schedule({.name = "ag_matmul_layout",
                     .ranks = {1, 2, 3, 4, 8},
                     .pool = with("streams", 4, "streams of the pool", {.min = 1, .max = 64, .was = "lanes"}),
                     .lowering = lowering(with)});
  const Index ranks = schedule.ranks();
  const Index m = schedule.param("M", 960), k = schedule.param("K", 64), n = schedule.param("N", 32);
  const Tensor a = schedule.input("A", chorale::DType::f32, {over_ranks(ranks), m / ranks, k});
  const Tensor b = schedule.input("B", chorale::DType::f32, {k, n});
  const Tensor c = schedule.output("C", chorale::DType::f32, {over_streams(ranks), m / ranks, n});
  schedule.matmul(c, a, b);
  return schedule;
}

}  // namespace
