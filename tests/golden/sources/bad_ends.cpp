#include <chorale/dsl.hpp>
#include <cstdlib>
#include <stdexcept>
using namespace chorale::dsl;

CHORALE_PROGRAM(throws_a_number, Parameters&) { throw 3; }

CHORALE_PROGRAM(throws_an_error, Parameters&) { throw std::length_error("too long"); }

CHORALE_PROGRAM(aborts, Parameters&) { std::abort(); }

CHORALE_PROGRAM(exits, Parameters&) { std::exit(0); }
