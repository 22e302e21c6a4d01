// This is the all-gather of allgather_p2p as a layout. The axis has a slice on each rank before, and all
// slices on each rank after. The compiler makes the turns, the exchanges and the streams.

#include <chorale/dsl.hpp>

namespace {
using namespace chorale::dsl;

CHORALE_PROGRAM(allgather_layout, Parameters& with) {
  with.summary("All-gather, as a layout that the compiler lowers to exchanges between pairs.");
  Schedule schedule({.name = "allgather_layout",
                     .ranks = {1, 2, 3, 4, 8},
                     .pool = with("streams", 4, "streams of the pool", {.min = 1, .max = 64, .was = "lanes"}),
                     .lowering = lowering(with, {.order = Order::linear, .style = StreamStyle::pool})});
  const Index ranks = schedule.ranks(), n = schedule.param("n", 1024);
  const Tensor mine = schedule.input("t0", chorale::DType::f32, {over_ranks(ranks), n});
  const Tensor all = schedule.output("t1", chorale::DType::f32, {over_streams(ranks), n});
  schedule.set(all, mine);
  return schedule;
}

}  // namespace
