// This is matmul_ar as a layout. Unlike in matmul_rs_layout, every rank needs all rows of C.

#include <chorale/dsl.hpp>

namespace {
using namespace chorale::dsl;

CHORALE_PROGRAM(matmul_ar_layout, Parameters& with) {
  with.summary("Matrix product and all-reduce, as a layout.");
  Schedule schedule({.name = "matmul_ar_layout",
                     .ranks = {1, 2, 3, 4, 8},
                     .pool = with("streams", 4, "streams of the pool", {.min = 1, .max = 64, .was = "lanes"}),
                     .lowering = lowering(with)});
  const Index ranks = schedule.ranks();
  const Index m = schedule.param("M", 960), k = schedule.param("K", 96), n = schedule.param("N", 32);
  const chorale::DType f32 = chorale::DType::f32;
  const Tensor a = schedule.input("A", f32, {over_ranks(ranks), ranks, m / ranks, k / ranks});
  const Tensor b = schedule.input("B", f32, {over_ranks(ranks), 1, k / ranks, n});
  const Tensor parts = schedule.temporary("P", f32, {over_ranks(ranks), over_streams(ranks), m / ranks, n});
  const Tensor c = schedule.output("C", f32, {over_streams(ranks), m / ranks, n});
  schedule.matmul(parts, a, b);
  schedule.sum(c, parts, 0);
  return schedule;
}

}  // namespace
