// In this all-to-all, every rank receives from one rank at a time: in turn d, rank r writes to rank r + d and
// receives from rank r - d.
//
// If two ranks write to one rank, they share its link, and with long messages ranks drift apart until that
// happens. So each rank says whose turn it is. It signals rank r - 1 when it is launched, because its output
// may be written from then on. It signals each later rank when the rank before has signalled that all is
// written. These signals are relaxed, because the other rank reads nothing that this rank has written. All
// signals between two ranks use one channel, and both ranks rely on their order: "your turn" of turn d and
// "all is written" of turn ranks - d are sent and awaited in the same order on both sides.
//
// Only rank r writes chunk r of any output. A rank returns when the last rank has written, because nothing
// else is written to it and nobody reads from it. Separate thread blocks copy its own part.
//
// Cost: two signals per turn, one after the other; (ranks - 1) / ranks messages leave each rank, over one
// link at a time. Use it for long messages.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(alltoall_in_turns, Parameters& with) {
  with.summary("All-to-all of large messages: everybody gets from one rank at a time.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  Program program({.name = "alltoall_in_turns",
                   .collective = AllToAll{.ranks = ranks, .chunk_factor = 1},
                   .instances = with("instances", 4, "thread blocks that split every chunk", {.min = 1})});

  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    BaseBuffer in = me.get_input_buffer();
    me.copy(me.get_output_buffer()[rank], in[rank], ranks == 1 ? 0 : 1);
    std::vector<MemoryChannel> ahead;  // to rank + 1, rank + 2, ...
    for (int i = 1; i < ranks; ++i) ahead.push_back({program, (rank + i) % ranks, rank});
    const auto behind = [&](int turn) -> MemoryChannel& { return ahead[size_t(ranks - turn - 1)]; };

    for (int turn = 1; turn < ranks; ++turn) {
      MemoryChannel& to = ahead[size_t(turn - 1)];
      behind(turn).signal(0, SyncType::both, /*relaxed=*/true);
      to.wait(0, SyncType::both, /*relaxed=*/true);
      to.put(Rank(program, to.dst_rank()).get_output_buffer()[rank], in[to.dst_rank()], 0);
      to.signal(0);
      behind(turn).wait(0);
    }
  }
  return program;
}
