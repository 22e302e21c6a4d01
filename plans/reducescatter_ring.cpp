// Reduce-scatter around a ring: part p starts at the rank behind its owner p and collects every rank's on its
// way round.
//
// The fold of part p is ((x_p+1 + x_p+2) + ...) + x_p, rounded at every hop.
//
// Each step has its own scratch slot at the right neighbour, so nobody has to ask for room within a launch.
// Between launches somebody has to: the sum of its own part tells a rank nothing about what its right
// neighbour has read. So a rank that has read all its slots says so to the left, and returns when it has
// heard the same from the right.
//
// Cost: ranks hops of latency; (ranks - 1) / ranks S bytes leave each rank, over one link at a time. Every
// link carries one stream, which is faster than streams to and from all peers where messages are long.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(reducescatter_ring, Parameters& with) {
  with.summary("Reduce-scatter of large messages around a ring.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  Program program({.name = "reducescatter_ring",
                   .collective = ReduceScatter{.ranks = ranks, .chunk_factor = 1},
                   .instances = with("instances", 4, "rings that split every part", {.min = 1})});
  const auto around = [&](int rank) { return (rank % ranks + ranks) % ranks; };
  std::vector<Buffer> slots;  // of each rank, one a step
  for (int rank = 0; rank < ranks && ranks > 1; ++rank) slots.push_back({program, rank, ranks - 1});

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const BaseBuffer in = me.get_input_buffer();
    const Chunk sum = me.get_output_buffer()[0];
    if (ranks == 1) {
      me.copy(sum, in[0], 0);
      break;
    }
    const int next = around(rank + 1);
    MemoryChannel right(program, next, rank);
    // Two ranks are each other's right and left: one channel serves both ways.
    MemoryChannel left = ranks == 2 ? right : MemoryChannel(program, around(rank - 1), rank);

    right.put(slots[next][0], in[around(rank - 1)], 0);
    right.signal(0);
    for (int step = 0; step < ranks - 1; ++step) {
      const Chunk so_far = slots[rank][step];
      left.wait(0);
      if (step == ranks - 2) {
        me.reduce(so_far, {in[rank]}, 0, sum);
        break;
      }
      me.reduce(so_far, {in[around(rank - 2 - step)]}, 0);
      right.put(slots[next][step + 1], so_far, 0);
      right.signal(0);
    }
    left.signal(0);
    right.wait(0);
  }
  return program;
}
