#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(bad_syntax, Parameters& with) {
  Program program({.name = "bad_syntax", .collective = AllGather{.ranks = 2}});
  program.no_such_method();
  return program;
}
