// The wait comes only after the read that needs it.
#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(bad_late_wait, Parameters& with) {
  const int ranks = 4;
  Program program({.name = "bad_late_wait", .collective = AllReduce{.ranks = ranks, .chunk_factor = 1}});
  std::vector<Buffer> scratch;
  for (int rank = 0; rank < ranks; ++rank) scratch.push_back(Buffer(program, rank, 2));

  for (int rank = 0; rank < ranks; ++rank) {
    const int mate = rank ^ 1, across = rank ^ 2;
    const int half = (rank % 2) * 2;  // the first chunk of the half that I reduce
    Rank me(program, rank);
    const MemoryChannel to_mate(program, mate, rank);
    const MemoryChannel to_across(program, across, rank);
    const Chunk mine = me.get_output_buffer()[{half, half + 2}];
    const Chunk from_across = scratch[rank][{0, 2}];

    // reduce within the pair
    me.copy(mine, me.get_input_buffer()[{half, half + 2}], 0);
    to_mate.signal(0);
    to_mate.wait(0);
    to_mate.reduce(mine, {program.rank(mate).get_input_buffer()[{half, half + 2}]}, 0);

    // exchange between pairs
    to_across.put(scratch[across][{0, 2}], mine, 0);
    to_across.signal(0);
    me.reduce(mine, {from_across}, 0);
    to_across.wait(0);
    to_across.signal(0);  // I have read my scratch

    // broadcast in the pair
    to_mate.put(program.rank(mate).get_output_buffer()[{half, half + 2}], mine, 0);
    to_mate.signal(0);
    to_mate.wait(0);
    to_across.wait(0);
  }
  return program;
}
