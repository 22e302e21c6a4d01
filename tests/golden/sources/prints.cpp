// The program prints when it is loaded and when it is built.
#include <chorale/dsl.hpp>
#include <cstdio>
#include <iostream>
using namespace chorale::dsl;

static const bool loaded = (std::cout << "loaded\n", true);

CHORALE_PROGRAM(prints, Parameters&) {
  std::cout << "by a stream\n" << std::flush;
  std::printf("by printf()\n");
  std::cerr << "to standard error\n";
  Program program({.name = "prints", .collective = TestCollective{.ranks = 1, .input = 1, .output = 1}});
  Rank me(program, 0);
  me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], 0);
  return program;
}
