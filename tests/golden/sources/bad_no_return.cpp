// The program forgets to return what it has made.
#include <chorale/dsl.hpp>
using namespace chorale::dsl;

CHORALE_PROGRAM(bad_no_return, Parameters&) {
  Program program({.name = "bad_no_return", .collective = AllGather{.ranks = 2, .chunk_factor = 1}});
}
