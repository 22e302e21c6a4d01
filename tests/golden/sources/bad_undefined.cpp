// The source calls a function that no file defines.
#include <chorale/dsl.hpp>
using namespace chorale::dsl;

extern "C" int chunks_of_another_file();

CHORALE_PROGRAM(undefined, Parameters&) {
  const int chunks = chunks_of_another_file();
  return Program({.name = "undefined", .collective = AllGather{.ranks = 2, .chunk_factor = chunks}});
}
