// A relaxed signal announces data, but orders nothing.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W67_relaxed_signal, Parameters&) {
  Program program(
      {.name = "W67_relaxed_signal", .collective = TestCollective{.ranks = 2, .input = 1, .output = 1}});
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  back.signal(0, SyncType::none, true);
  there.wait(0, SyncType::after, true);
  there.put(program.rank(1).get_output_buffer()[0], program.rank(0).get_input_buffer()[0], 0);
  there.signal(0, SyncType::both, true);
  back.wait(0, SyncType::both, true);
  return program;
}
