// A pipeline is inside a pipeline.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W58_nested_pipelines, Parameters&) {
  Program program(
      {.name = "W58_nested_pipelines", .collective = TestCollective{.ranks = 1, .input = 1, .output = 1}});
  Rank me(program, 0);
  const LoopIterationContext outer(program, 1024, 1);
  const LoopIterationContext inner(program, 512, 1);
  me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], 0);
  return program;
}
