// A reduce-scatter of 4 ranks, each of which puts its parts into slots of the others' scratch. `fault` is a
// mistake of a beginner.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(bad_slots, Parameters& with) {
  const std::string fault = with("fault", "", "a mistake: slot, slots, part, parts, from or own");
  const int ranks = 4;
  Program program({.name = "bad_slots",
                   .collective = ReduceScatter{.ranks = ranks, .chunk_factor = 1},
                   .instances = with("instances", 1, "thread blocks that split every part"),
                   .use_double_scratch_buffer = true});
  std::vector<Buffer> slots;
  for (int rank = 0; rank < ranks; ++rank) slots.push_back({program, rank, ranks});
  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const auto in = me.get_input_buffer();
    std::vector<MemoryChannel> peers;
    for (int i = 1; i < ranks; ++i) peers.push_back({program, (rank + i) % ranks, rank});
    const bool wrong_slot = fault == "slots" || (fault == "slot" && rank == 1);
    const bool wrong_part = fault == "parts" || (fault == "part" && rank == 1);
    for (MemoryChannel& peer : peers) {
      const int to = peer.dst_rank();
      peer.put(slots[to][wrong_slot ? (rank + 1) % ranks : rank], in[wrong_part ? (to + 1) % ranks : to], 0);
    }
    for (MemoryChannel& peer : peers) peer.signal(0);
    for (MemoryChannel& peer : peers) peer.wait(0);
    std::vector<Chunk> others;
    for (const MemoryChannel& peer : peers) {
      const int from = peer.dst_rank();
      others.push_back(slots[rank][fault == "from" ? (from + 1) % ranks : from]);
    }
    me.reduce(in[fault == "own" ? (rank + 1) % ranks : rank], others, 0, me.get_output_buffer()[0]);
  }
  return program;
}
