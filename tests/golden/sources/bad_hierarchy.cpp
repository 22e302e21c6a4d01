// Pairs of GPUs reduce, exchange their halves with the other pair, and share the result. `fault` makes a mistake.
#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(bad_hierarchy, Parameters& with) {
  const std::string fault =
      with("fault", "none", "the mistake: wrong_channel, no_signal, no_wait, late_wait or no_credit");
  const bool early_wait = fault != "no_signal" && fault != "no_wait" && fault != "late_wait";
  const bool credit = fault != "no_credit";
  const int ranks = 4;
  Program program({.name = "bad_hierarchy", .collective = AllReduce{.ranks = ranks, .chunk_factor = 1}});
  std::vector<Buffer> scratch;
  for (int rank = 0; rank < ranks; ++rank) scratch.push_back(Buffer(program, rank, 2));

  for (int rank = 0; rank < ranks; ++rank) {
    const int mate = rank ^ 1, across = fault == "wrong_channel" ? (rank + 1) % ranks : rank ^ 2;
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
    if (fault != "no_signal") to_across.signal(0);
    if (early_wait) to_across.wait(0);
    me.reduce(mine, {from_across}, 0);
    if (fault == "late_wait") to_across.wait(0);
    if (credit) to_across.signal(0);  // I have read my scratch

    // broadcast in the pair
    to_mate.put(program.rank(mate).get_output_buffer()[{half, half + 2}], mine, 0);
    to_mate.signal(0);
    to_mate.wait(0);
    if (credit) to_across.wait(0);
  }
  return program;
}
