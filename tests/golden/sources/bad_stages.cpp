// A pipeline of matrix products, one stage on each rank. The transfers of a batch overlap with the product of the
// one before. `fault` is a mistake.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;
using chorale::DType;

CHORALE_PROGRAM(bad_stages, Parameters& with) {
  const std::string fault = with("fault", "", "a mistake: reuse, early, one_stream, no_wait or no_after");
  Schedule schedule({.name = "bad_stages", .ranks = {2, 3, 8}});
  const Index rank = schedule.rank(), ranks = schedule.ranks();
  const Index batches = schedule.param("batches", 4), m = schedule.param("M", 64), k = schedule.param("K", 32);
  const Tensor x = schedule.input("X", DType::f32, {batches, m, k});
  const Tensor w = schedule.input("W", DType::f32, {over_ranks(ranks), k, k});
  const Tensor y = schedule.output("Y", DType::f32, {batches, m, k});
  const Tensor in = fault == "reuse" ? schedule.temporary("T", DType::f32, {2, m, k})
                                     : schedule.temporary("T", DType::f32, {batches, m, k});
  const Stream main = schedule.main(), from = schedule.stream("from"), comp = schedule.stream("comp");
  const Stream to = schedule.stream("to"), sends = fault == "one_stream" ? comp : to;
  const Token arrived = schedule.token();
  const auto slot = [&](const Index& i) { return fault == "reuse" ? in[i % 2] : in[i]; };

  main.fork({from, comp, to});
  schedule.when(rank > 0, [&] {
    schedule.loop("i", 0, batches, [&](Index i) {
      from.group(arrived[i], [&](Group& group) { group.recv(slot(i), rank - 1); });
      if (fault == "early") from.wait(arrived[i]);
    });
  });
  schedule.loop("j", 0, batches, [&](Index j) {
    schedule.when(
        rank > 0,
        [&] {
          if (fault != "no_wait" && fault != "early") comp.wait(arrived[j]);
          comp.call("matmul", {y[j]}, {slot(j), w[0]});
        },
        [&] { comp.call("matmul", {y[j]}, {x[j], w[0]}); });
    schedule.when(rank + 1 < ranks, [&] {
      if (fault != "one_stream" && fault != "no_after") sends.after({comp});
      sends.wait(sends.group([&](Group& group) { group.send(y[j], rank + 1); }));
    });
  });
  main.join({from, comp, to});
  return schedule;
}
