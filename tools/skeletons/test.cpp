// This program is a test: its output is not promised, so the proof says only that it ends and has no race.
//
//   prove it:        chorale check my_test.cpp
//   run it:          chorale run my_test.cpp --set ranks=4
//   write its plan:  chorale compile my_test.cpp --set ranks=8 -o plan.json
//
// The proof covers every order in which thread blocks and ranks make progress. Remove a wait, and
// `chorale check` shows what then goes wrong.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(my_test, Parameters& with) {
  with.summary("Test: every rank puts its input into the output of the next rank.");
  const int ranks = with("ranks", 4, "number of GPUs", {.min = 2, .max = 1024});
  Program program({.name = "my_test", .collective = TestCollective{.ranks = ranks, .input = 1, .output = 1}});

  for (int rank = 0; rank < ranks; ++rank) {
    const int next = (rank + 1) % ranks;
    // A channel leads to its first rank from its second rank, which runs the operations. These two are a
    // pair: a wait on one takes a signal of the other. Thread block 0 sends, and thread block 1 receives.
    const MemoryChannel to_next(program, next, rank), back(program, rank, next);
    back.signal(1);  // the output of `next` may be written now
    to_next.wait(0);
    to_next.put(program.rank(next).get_output_buffer()[0], program.rank(rank).get_input_buffer()[0], 0);
    to_next.signal(0);  // the message has arrived
    back.wait(1);
  }
  return program;
}
