// This program sends messages: the program decides which rank receives the input of which rank.
//
//   prove it:        chorale check my_sendrecv.cpp
//   run it:          chorale run my_sendrecv.cpp --set ranks=4
//   write its plan:  chorale compile my_sendrecv.cpp --set ranks=8 -o plan.json
//
// The proof covers every order in which thread blocks and ranks make progress. Remove a wait, and
// `chorale check` shows what then goes wrong.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(my_sendrecv, Parameters& with) {
  with.summary("Send and receive: every rank puts its input into the output of the next rank.");
  const int ranks = with("ranks", 4, "number of GPUs", {.min = 2, .max = 1024});
  // With chunk_factor = 1 an input and an output are one chunk each.
  Program program({.name = "my_sendrecv", .collective = SendRecv{.ranks = ranks, .chunk_factor = 1}});

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
