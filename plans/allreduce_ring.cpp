// All-reduce around a ring: chunk c starts at rank c, collects every rank's part, then travels round once
// more as the sum.
//
// The fold of chunk c is ((x_c + x_c+1) + x_c+2) + ..., rounded at every hop; it happens once, so all ranks
// get its bits.
//
// Nobody needs to ask whether the right neighbour is ready. In the first lap each step has its own scratch
// slot there. A rank that has got the sum of chunk c knows that c went through every rank's slot: when it has
// all sums, its neighbour has read all slots, and the next launch may overwrite them. In the second lap a sum
// is written to a rank's output only when that rank has added its own part: so it has been launched, and,
// where output and input are one memory, that part of the input is done with. A rank returns when it has all
// sums: nothing else is ever written to it, and nobody reads from it.
//
// Cost: 2 (ranks - 1) hops of latency; 2 (ranks - 1) / ranks S bytes leave each rank over one link, the least
// possible.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(allreduce_ring, Parameters& with) {
  with.summary("All-reduce of large messages around a ring: the least traffic, over one link.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const bool inplace = with("inplace", false, "the sum replaces the input");
  Program program({.name = "allreduce_ring",
                   .collective = AllReduce{.ranks = ranks, .chunk_factor = 1, .inplace = inplace},
                   .instances = with("instances", 4, "rings that split every chunk", {.min = 1})});
  const auto around = [&](int rank) { return (rank % ranks + ranks) % ranks; };
  const auto input = [&](int rank) { return program.rank(rank).get_input_buffer(); };
  const auto output = [&](int rank) {
    return inplace ? input(rank) : program.rank(rank).get_output_buffer();
  };
  std::vector<Buffer> slots;  // of each rank, one a step of the first lap
  std::vector<MemoryChannel> right, left;
  for (int rank = 0; rank < ranks && ranks > 1; ++rank) {
    slots.push_back({program, rank, ranks - 1});
    right.push_back({program, around(rank + 1), rank});
    // Two ranks are each other's right and left: one channel serves both ways.
    left.push_back(ranks == 2 ? right.back() : MemoryChannel(program, around(rank - 1), rank));
  }

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const BaseBuffer in = input(rank), out = output(rank), next_out = output(around(rank + 1));
    if (ranks == 1) {
      if (!inplace) me.copy(out[0], in[0], 0);
      break;
    }
    const int next = around(rank + 1);

    right[rank].put(slots[next][0], in[rank], 0);
    right[rank].signal(0);
    for (int step = 0; step < ranks - 1; ++step) {
      const int chunk = around(rank - 1 - step);
      const Chunk so_far = slots[rank][step];
      left[rank].wait(0);
      if (step < ranks - 2) {
        me.reduce(so_far, {in[chunk]}, 0);
        right[rank].put(slots[next][step + 1], so_far, 0);
      } else {
        me.reduce(so_far, {in[chunk]}, 0, out[chunk]);
        right[rank].put(next_out[chunk], out[chunk], 0);
      }
      right[rank].signal(0);
    }
    for (int step = 0; step < ranks - 1; ++step) {
      const int chunk = around(rank - step);
      left[rank].wait(0);
      if (step == ranks - 2) break;  // the neighbour was the first to have it
      right[rank].put(next_out[chunk], out[chunk], 0);
      right[rank].signal(0);
    }
  }
  return program;
}
