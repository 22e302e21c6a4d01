// This program is a collective of your own: it says what every output chunk is, and the proof checks that.
//
//   prove it:        chorale check my_custom.cpp
//   run it:          chorale run my_custom.cpp --set ranks=4
//   write its plan:  chorale compile my_custom.cpp --set ranks=8 -o plan.json
//
// The proof covers every order in which thread blocks and ranks make progress. Remove a wait, and
// `chorale check` shows what then goes wrong.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(my_custom, Parameters& with) {
  with.summary("Custom: every rank receives the sum of its own input and its left neighbour's.");
  const int ranks = with("ranks", 4, "number of GPUs", {.min = 2, .max = 1024});
  // This is the promise: an output chunk is the sum of the input chunks that this function lists.
  const auto promise = [ranks](int64_t rank, int64_t /*chunk*/) {
    const int64_t left = (rank + ranks - 1) % ranks;
    return std::vector<Contribution>{{.rank = uint32_t(rank), .chunk = 0},
                                     {.rank = uint32_t(left), .chunk = 0}};
  };
  Program program(
      {.name = "my_custom", .collective = Custom{.ranks = ranks, .input = 1, .output = 1, .post = promise}});

  for (int rank = 0; rank < ranks; ++rank) {
    const int next = (rank + 1) % ranks;
    // A channel leads to its first rank from its second rank, which runs the operations. These two are a
    // pair: a wait on one takes a signal of the other. Thread block 0 adds, and thread block 1 lends its
    // input.
    const MemoryChannel to_next(program, next, rank), back(program, rank, next);
    to_next.signal(1);  // the input of `rank` may be read now
    back.wait(0);
    const Rank adder(program, next);
    const Chunk sum = adder.get_output_buffer()[0];
    adder.copy(sum, adder.get_input_buffer()[0], 0);
    back.reduce(sum, {program.rank(rank).get_input_buffer()[0]}, 0);
    back.signal(0);  // the input has been read, so the application may change it
    to_next.wait(1);
  }
  return program;
}
