// An all-gather of 4 ranks by recursive doubling through scratch. Block 0 exchanges, and block 1 copies what has
// arrived to the output. `fault` is a mistake in how block 0 tells block 1, or in what block 1 copies.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(bad_blocks, Parameters& with) {
  const std::string fault = with("fault", "", "a mistake: silent, own_block, other_block or chunk");
  const int ranks = 4;
  Program program({.name = "bad_blocks", .collective = AllGather{.ranks = ranks, .chunk_factor = 1}});
  std::vector<Buffer> box;
  for (int rank = 0; rank < ranks; ++rank) box.push_back(Buffer(program, rank, ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    Semaphore arrived(program, rank, 0);
    std::vector<MemoryChannel> peers;
    for (int far = 1; far < ranks; far *= 2) peers.push_back(MemoryChannel(program, rank ^ far, rank));
    for (const MemoryChannel& peer : peers) peer.signal(0);  // my scratch may be written
    me.copy(box[rank][rank], me.get_input_buffer()[0], 0);
    me.copy(me.get_output_buffer()[rank], me.get_input_buffer()[0], 1);
    for (int step = 0; step < 2; ++step) {
      const int far = 1 << step, mine = rank / far * far, theirs = (fault == "chunk" ? rank : rank ^ far) / far * far;
      peers[step].wait(0);
      peers[step].put(box[rank ^ far][{mine, mine + far}], box[rank][{mine, mine + far}], 0);
      peers[step].signal(0);
      peers[step].wait(0);
      if (fault != "silent") arrived.release(0);
      if (fault != "silent") arrived.acquire(fault == "own_block" ? 0 : fault == "other_block" ? 2 : 1);
      me.copy(me.get_output_buffer()[{theirs, theirs + far}], box[rank][{theirs, theirs + far}], 1);
    }
  }
  return program;
}
