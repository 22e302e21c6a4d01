// Replication policy none with 1 instance makes one instance, as documented.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W23_no_replication_of_one, Parameters&) {
  Program program({.name = "W23_no_replication_of_one",
                   .collective = AllGather{.ranks = 1, .chunk_factor = 2},
                   .instances = 1,
                   .replication = ReplicationPolicy::none});
  Rank me(program, 0);
  me.copy(me.get_output_buffer()[{0, 2}], me.get_input_buffer()[{0, 2}], 0);
  return program;
}
