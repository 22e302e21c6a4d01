// Every rank swaps its input with the rank opposite, as in the last round of algorithms whose neighbours are
// ever further away: both neighbours are one rank there, and both channels lead to it.
#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(bad_opposite, Parameters& with) {
  const int ranks = 8;
  const bool ask = with("ask", true, "the other rank says when it may be written to");
  const auto opposite = [&](int64_t rank) { return (rank + ranks / 2) % ranks; };
  Program program({.name = "bad_opposite",
                   .collective = Custom{
                       .ranks = ranks, .input = 1, .output = 1, .post = [=](int64_t rank, int64_t) {
                         return std::vector<Contribution>{{.rank = uint32_t(opposite(rank)), .chunk = 0}};
                       }}});
  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    MemoryChannel to(program, opposite(rank), rank), from(program, opposite(rank), rank);
    if (ask) from.signal(0);
    if (ask) to.wait(0);
    to.put(program.rank(opposite(rank)).get_output_buffer()[0], me.get_input_buffer()[0], 0);
    to.signal(0);
    from.wait(0);
  }
  return program;
}
