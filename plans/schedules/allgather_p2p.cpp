// Every rank sends its slice to every rank. In turn i, all ranks exchange with rank i.

#include <chorale/dsl.hpp>

namespace {
using namespace chorale::dsl;

CHORALE_PROGRAM(allgather_p2p, Parameters& with) {
  with.summary("All-gather by exchanges between pairs, over a pool of streams.");
  const int64_t streams = with("streams", 4, "streams of the pool", {.min = 1, .max = 64, .was = "lanes"});
  Schedule schedule({.name = "allgather_p2p", .ranks = {1, 2, 3, 4, 8}, .pool = streams});
  const Index rank = schedule.rank(), ranks = schedule.ranks();
  const Index n = schedule.param("n", 1024);
  const Tensor mine = schedule.input("t0", chorale::DType::f32, {over_ranks(ranks), n});
  const Tensor all = schedule.output("t1", chorale::DType::f32, {over_streams(ranks), n});
  const auto stream_of = [&](Index turn) { return schedule.pool(turn % schedule.streams()); };

  // The fork needs a separate loop. With fork and join in one body, each turn would wait for the one before.
  schedule.loop("i", 0, ranks, [&](Index i) { stream_of(i).after({schedule.main()}); });
  schedule.loop("i", 0, ranks, [&](Index i) {
    const Stream stream = stream_of(i);
    schedule.when(
        i == rank, [&] { stream.copy(all[i], mine[0]); },
        [&] {
          const Token exchanged = stream.group([&](Group& group) {
            group.recv(all[i], i);
            group.send(mine, i);
          });
          stream.wait(exchanged);
        });
    schedule.main().after({stream});
  });
  return schedule;
}

}  // namespace
