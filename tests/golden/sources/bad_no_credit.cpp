// Rank 0 sends two messages through one slot of rank 1, and does not check whether the first was taken out.
#include <chorale/dsl.hpp>
using namespace chorale::dsl;

CHORALE_PROGRAM(bad_no_credit, Parameters& with) {
  const bool credit = with("credit", false, "whether it asks");
  Program program({.name = "bad_no_credit", .collective = Broadcast{.ranks = 2, .chunk_factor = 2}});
  Rank root(program, 0), leaf(program, 1);
  MemoryChannel down(program, 1, 0), up(program, 0, 1);
  Buffer slot(program, 1, 1);
  root.copy(root.get_output_buffer()[{0, 2}], root.get_input_buffer()[{0, 2}], 1);
  up.signal(0);
  down.wait(0);
  for (int chunk = 0; chunk < 2; ++chunk) {
    if (credit && chunk > 0) down.wait(0);
    down.put(slot[0], root.get_input_buffer()[chunk], 0);
    down.signal(0);
    up.wait(0);
    leaf.copy(leaf.get_output_buffer()[chunk], slot[0], 0);
    if (credit && chunk == 0) up.signal(0);
  }
  return program;
}
