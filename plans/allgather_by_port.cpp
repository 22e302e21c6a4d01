// This all-gather uses copy engines: in turn d, rank r's proxy writes its input to rank r + d.
//
// The turns are those of alltoall_in_turns, over port channels as in alltoall_by_port,
// so no two ranks write to one rank at a time. Only rank r writes part r of any output,
// and only after the owner of the output was launched. A rank returns when all parts
// have arrived and its proxy has read its input for the last time. Thread block 0 only
// gives orders. Separate blocks copy the rank's own part, unless it is already in
// place.
//
// Cost: two signals and an order to the proxy per turn, one after the other; ranks - 1
// inputs leave each rank, over one link at a time, without its multiprocessors. Use it
// for the longest messages, and for long ones beside compute.

#include <chorale/dsl.hpp>
#include <numeric>

using namespace chorale::dsl;

CHORALE_PROGRAM(allgather_by_port, Parameters& with) {
  with.summary("All-gather without multiprocessors: copy engines write to one rank at a time.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const int copiers = with("copiers", 64, "thread blocks of each part that copy the rank's own", {.min = 1});
  const bool inplace = with("inplace", false, "the input is the rank's part of the output");
  Program program(
      {.name = "allgather_by_port",
       .collective = AllGather{.ranks = ranks, .chunk_factor = 1, .inplace = inplace},
       .instances = with("instances", 1, "parts of every chunk, each with its own orders", {.min = 1})});

  std::vector<int64_t> blocks(size_t(copiers), 0);
  std::iota(blocks.begin(), blocks.end(), ranks == 1 ? 0 : 1);
  const ThreadBlockGroup own(blocks);
  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const Chunk mine = me.get_input_buffer()[0];
    if (!inplace) me.copy(me.get_output_buffer()[rank], mine, own);
    // The channels lead to rank + 1, rank + 2, ...
    std::vector<MemoryChannel> turns;
    std::vector<PortChannel> ports;
    for (int i = 1; i < ranks; ++i) {
      turns.push_back({program, (rank + i) % ranks, rank});
      ports.push_back({program, (rank + i) % ranks, rank});
    }

    for (int turn = 1; turn < ranks; ++turn) {
      const size_t ahead = size_t(turn - 1), behind = size_t(ranks - turn - 1);
      const int to = turns[ahead].dst_rank();
      turns[behind].signal(0, SyncType::both, /*relaxed=*/true);
      turns[ahead].wait(0, SyncType::both, /*relaxed=*/true);
      ports[ahead].put_with_signal(Rank(program, to).get_output_buffer()[rank], mine, 0);
      ports[behind].wait(0);
    }
    for (PortChannel& port : ports) port.flush(0);
  }
  return program;
}
