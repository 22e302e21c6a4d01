// Replication policy none with 2 instances makes one instance, as documented.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

CHORALE_PROGRAM(W22_no_replication, Parameters&) {
  Program program({.name = "W22_no_replication",
                   .collective = AllGather{.ranks = 1, .chunk_factor = 2},
                   .instances = 2,
                   .replication = ReplicationPolicy::none});
  Rank me(program, 0);
  me.copy(me.get_output_buffer()[{0, 2}], me.get_input_buffer()[{0, 2}], 0);
  return program;
}
