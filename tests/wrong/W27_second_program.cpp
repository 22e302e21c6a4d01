// The second program of a process numbers its barriers from 0.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W27_second_program, Parameters&) {
  const auto copied = [](const char* name) {
    Program program({.name = name, .collective = AllGather{.ranks = 1, .chunk_factor = 2}});
    Rank me(program, 0);
    const Buffer scratch(program, 0, 2);
    me.copy(scratch[{0, 2}], me.get_input_buffer()[{0, 2}], 0);
    me.barrier({0, 1});
    me.copy(me.get_output_buffer()[{0, 2}], scratch[{0, 2}], 1);
    return program;
  };
  copied("first").compile();
  Program program = copied("W27_second_program");
  return program;
}
