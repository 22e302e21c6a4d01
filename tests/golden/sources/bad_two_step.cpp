// An all-reduce: each rank sums one part, which the others put into slots of its scratch, and puts the sum to
// all outputs. `fault` is a mistake of a beginner.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(bad_two_step, Parameters& with) {
  const std::string fault = with("fault", "", "a mistake: slot, first, own, from, sum, packets or in_place");
  const int ranks = with("ranks", 3, "number of ranks");
  Program program({.name = "bad_two_step",
                   .collective = AllReduce{.ranks = ranks, .chunk_factor = 1},
                   .protocol = Protocol::Simple,
                   .use_double_scratch_buffer = true});
  std::vector<Buffer> slots;
  for (int rank = 0; rank < ranks; ++rank) slots.push_back({program, rank, ranks});
  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const auto in = me.get_input_buffer(), out = me.get_output_buffer();
    std::vector<MemoryChannel> peers;
    for (int i = 1; i < ranks; ++i) peers.push_back({program, (rank + i) % ranks, rank});
    std::vector<Chunk> others;
    for (const MemoryChannel& peer : peers) {
      const int to = peer.dst_rank(), from = fault == "own" ? rank : fault == "from" ? (to + 1) % ranks : to;
      const Chunk slot = slots[to][fault == "slot" ? to : fault == "first" ? 0 : rank];
      if (fault == "packets")
        peer.put_packets(slot, in[to], 0);
      else
        peer.put(slot, in[to], 0);
      others.push_back(slots[rank][from]);
      peer.signal(0);
    }
    for (const MemoryChannel& peer : peers) peer.wait(0);
    const Chunk sum = out[fault == "sum" ? (rank + 1) % ranks : rank];
    if (fault == "in_place") {
      me.copy(sum, in[rank], 0);
      me.reduce(sum, {others[1], others[1]}, 0);
    } else {
      me.reduce(in[rank], others, 0, sum);
    }
    for (const MemoryChannel& peer : peers) {
      peer.put(Rank(program, peer.dst_rank()).get_output_buffer()[rank], sum, 0);
      peer.signal(0);
    }
    for (const MemoryChannel& peer : peers) peer.wait(0);
  }
  return program;
}
