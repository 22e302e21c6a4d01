// Slice s of every rank goes to rank s. In turn i a rank sends to the rank i ahead and receives from the rank
// i behind, so that no two ranks send to the same rank.

#include <chorale/dsl.hpp>

namespace {
using namespace chorale::dsl;

CHORALE_PROGRAM(alltoall_p2p, Parameters& with) {
  with.summary("All-to-all, a pair of slices a turn, in an order in which nobody is asked by two.");
  Schedule schedule({.name = "alltoall_p2p", .ranks = {1, 2, 3, 4, 8}});
  const Index rank = schedule.rank(), ranks = schedule.ranks(), n = schedule.param("n", 1024);
  const Tensor in = schedule.input("t0", chorale::DType::f32, {ranks, n});
  const Tensor out = schedule.output("t1", chorale::DType::f32, {ranks, n});
  const Stream main = schedule.main(), comm = schedule.stream("comm");

  main.copy(out[rank], in[rank]);
  main.fork({comm});
  schedule.loop("i", 1, ranks, [&](Index i) {
    const Index ahead = (rank + i) % ranks, behind = (rank - i) % ranks;
    const Token exchanged = comm.group([&](Group& group) {
      group.recv(out[behind], behind);
      group.send(in[ahead], ahead);
    });
    comm.wait(exchanged);
  });
  main.join({comm});
  return schedule;
}

}  // namespace
