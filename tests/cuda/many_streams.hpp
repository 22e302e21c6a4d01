/// \file
/// Runs schedules with more streams than a GPU has queues (CUDA_DEVICE_MAX_CONNECTIONS, 8 by default),
/// several times in a row, so that waiting work is always in front of other work. It is for tests with GPUs
/// and without.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "chorale/dsl.hpp"
#include "tests/cuda/schedule_work.hpp"

namespace chorale::test {

/// Gives the number of streams, which is more than a GPU has queues.
constexpr uint32_t many = 9;

/// Returns a plan that moves rank r's X[k][this rank] to Y[k][r] of every rank on stream k of the
/// schedule. Each stream moves its own data, through an extra copy.
inline Plan exchange_on_many_streams(uint32_t ranks, schedule::Mover via) {
  using namespace chorale::dsl;
  Schedule schedule({.name = "many_streams", .ranks = {ranks}});
  const Index rank = schedule.rank(), all = schedule.ranks(), n = schedule.param("n", 64);
  const Tensor x = schedule.input("X", DType::i32, {int(many), all, n});
  const Tensor y = schedule.output("Y", DType::i32, {int(many), all, n});
  const Tensor received = schedule.temporary("R", DType::i32, {int(many), all, n}, true);
  std::vector<dsl::Stream> streams;
  for (uint32_t k = 0; k < many; ++k) streams.push_back(schedule.stream("stream" + std::to_string(k)));
  schedule.main().fork(streams);
  for (uint32_t k = 0; k < many; ++k) {
    const int at = int(k);
    streams[k].copy(received[at].select(1, rank), x[at].select(1, rank));
    if (ranks > 1) {
      streams[k].wait(streams[k].group([&](Group& group) {
        for (uint32_t distance = 1; distance < ranks; ++distance) {
          const Index to = (rank + int(distance)) % all, of = (rank - int(distance)) % all;
          group.send(x[at].select(1, to), to, {.via = via});
          group.recv(received[at].select(1, of), of, {.via = via});
        }
      }));
    }
    streams[k].copy(y[at], received[at]);
  }
  schedule.main().join(streams);
  Compiled compiled = Program(schedule).compile();
  if (!compiled.diagnostics.empty()) throw std::logic_error(render(compiled.plan, compiled.diagnostics));
  return std::move(compiled.plan);
}

/// Runs the exchange several times in a row. Returns "good" or the first error.
/// \param n      the number of elements that a stream of one rank sends to another rank's
/// \param graph  true: the runs in a row are one graph, which is replayed
inline std::string exchanged_on_many_streams(World& world, schedule::Mover via, uint64_t n, bool graph) {
  constexpr int in_a_row = 3, times = 2;
  const uint64_t ranks = uint64_t(world.ranks()), rank = uint64_t(world.rank()), all = many * ranks * n;
  ScheduleRun schedule(world, exchange_on_many_streams(uint32_t(ranks), via), {.params = {{"n", int64_t(n)}}},
                       on_cuda());
  Stream stream;
  const auto run = [&] {
    for (int one = 0; one < in_a_row; ++one) schedule.run(stream.get());
  };
  if (graph) stream.capture(run);
  std::string said = "good";
  std::vector<int32_t> values(all);
  for (int time = 0; time < times && said == "good"; ++time) {
    for (uint64_t at = 0; at < all; ++at) values[at] = value_at(time, int(rank), at);
    cuda::check(cudaMemcpy(schedule.buffer("X"), values.data(), all * 4, cudaMemcpyHostToDevice), "H2D");
    cuda::check(cudaStreamSynchronize(nullptr), "H2D");
    world.barrier();  // a peer's mover may fetch it
    if (graph) {
      stream.replay();
    } else {
      run();
    }
    schedule.synchronize(stream.get());
    cuda::check(cudaMemcpy(values.data(), schedule.buffer("Y"), all * 4, cudaMemcpyDeviceToHost), "D2H");
    for (uint64_t at = 0; at < all && said == "good"; ++at) {
      const uint64_t k = at / (ranks * n), of = at / n % ranks;
      const int32_t expected = value_at(time, int(of), (k * ranks + rank) * n + at % n);
      if (values[at] != expected)
        said = fmt::format("via {}, {}: element {} is {}, not {}", schedule::mover_names[size_t(via)],
                           graph ? "a graph" : "runs", at, values[at], expected);
    }
    world.barrier();  // peers may still read this rank's memory
  }
  return said;
}

}  // namespace chorale::test
