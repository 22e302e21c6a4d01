// This all-reduce goes around a ring: chunk c starts at rank c, collects every rank's part, then goes round
// once more as the sum.
//
// Chunk c is added up as ((x_c + x_c+1) + x_c+2) + ..., rounded at every hop. This happens once, so all ranks
// get the same bits.
//
// No rank needs to ask whether its right neighbour is ready. In the first round each step has a separate
// scratch slot there. A rank that has the sum of chunk c knows that c has passed every rank's slot. So when
// it has all sums, its neighbour has read all slots, and the next launch may overwrite them. In the second
// round, a sum is written to a rank's output only after that rank has added its own part. So the rank has
// been launched, and if output and input are one memory, that part of the input is no longer needed. A rank
// returns when it has all sums, because nothing else is written to it and nobody reads from it.
//
// Cost: 2 (ranks - 1) hops of latency; 2 (ranks - 1) / ranks messages leave each rank over one link, which is
// the minimum.

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
  std::vector<Buffer> slots;  // by rank, one slot per step of the first round
  std::vector<MemoryChannel> right, left;
  for (int rank = 0; rank < ranks && ranks > 1; ++rank) {
    slots.push_back({program, rank, ranks - 1});
    right.push_back({program, around(rank + 1), rank});
    // With two ranks, the right and the left neighbour are the same, so one channel serves both ways.
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
      if (step == ranks - 2) break;  // the neighbour was the first rank with this sum
      right[rank].put(next_out[chunk], out[chunk], 0);
      right[rank].signal(0);
    }
  }
  return program;
}
