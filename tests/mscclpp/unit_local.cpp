// These are MSCCL++'s tests of operations on a rank's own memory, one operation each.

#include "share.hpp"

using namespace chorale::dsl;

namespace {

/// Builds a program of one rank.
Program alone(const char* name, int64_t input, int64_t output, Protocol protocol = Protocol::Simple) {
  return Program({.name = name,
                  .collective = TestCollective{.ranks = 1, .input = input, .output = output},
                  .protocol = protocol});
}

}  // namespace

CHORALE_PROGRAM(unit_barrier, Parameters&) {
  Program program = alone("barrier_test", 0, 0);
  program.rank(0).barrier({0, 1});
  return program;
}

CHORALE_PROGRAM(unit_copy, Parameters&) {
  Program program = alone("copy_test", 1, 1);
  const Rank me = program.rank(0);
  me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], 0);
  return program;
}

CHORALE_PROGRAM(unit_copy_packets, Parameters&) {
  Program program = alone("copy_packets_test", 1, 1, Protocol::LL);
  const Rank me = program.rank(0);
  const Buffer scratch(program, 0, 1);
  me.copy_packets(scratch[0], me.get_input_buffer()[0], 0);
  return program;
}

CHORALE_PROGRAM(unit_unpack_packets, Parameters&) {
  Program program = alone("unpack_packets_test", 1, 1, Protocol::LL);
  const Rank me = program.rank(0);
  const Buffer scratch(program, 0, 1);
  me.copy_packets(scratch[0], me.get_input_buffer()[0], 0);
  me.unpack_packets(me.get_output_buffer()[0], scratch[0], 0);
  return program;
}

CHORALE_PROGRAM(unit_reduce, Parameters&) {
  Program program = alone("reduce_test", 2, 1);
  const Rank me = program.rank(0);
  const BaseBuffer in = me.get_input_buffer();
  me.reduce(in[0], {in[1]}, 0, me.get_output_buffer()[0]);
  return program;
}

// MSCCL++ joins two reductions of one chunk into one destination to this, although the second one should
// replace the first one's result. One call states the intention.
CHORALE_PROGRAM(unit_reduce_fuse, Parameters&) {
  Program program = alone("reduce_test", 3, 2);
  const Rank me = program.rank(0);
  const BaseBuffer in = me.get_input_buffer();
  me.reduce(in[0], {in[1], in[2]}, 0, me.get_output_buffer()[0]);
  return program;
}

CHORALE_PROGRAM(unit_reduce_packets, Parameters&) {
  Program program = alone("reduce_packets_test", 0, 0, Protocol::LL);
  const Buffer scratch(program, 0, 3);
  program.rank(0).reduce(scratch[0], {scratch[1]}, 0, scratch[2], ReduceOp::sum, true);
  return program;
}

CHORALE_PROGRAM(unit_reduce_packets_fuse, Parameters&) {
  Program program = alone("reduce_packets_test", 0, 0, Protocol::LL);
  const Buffer scratch(program, 0, 4);
  program.rank(0).reduce(scratch[0], {scratch[1], scratch[2]}, 0, scratch[3], ReduceOp::sum, true);
  return program;
}

// The reduced data is also stored as packets, in one operation.
CHORALE_PROGRAM(unit_reduce_copy_packets, Parameters&) {
  Program program = alone("reduce_copy_packets_test", 1, 0, Protocol::LL);
  const Rank me = program.rank(0);
  const Buffer scratch(program, 0, 2);
  const Chunk sum = me.get_input_buffer()[0];
  me.reduce(sum, {scratch[0]}, 0, sum, ReduceOp::sum, true);
  me.copy_packets(scratch[1], sum, 0);
  return program;
}

CHORALE_PROGRAM(unit_pipeline, Parameters&) {
  Program program = alone("barrier_test", 1, 1);  // the name there
  const Rank me = program.rank(0);
  program.loop(1 << 20, 1, [&] { me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], 0); });
  return program;
}

CHORALE_PROGRAM(unit_tbg_copy, Parameters&) {
  Program program = alone("copy_test", 1, 1);
  const Rank me = program.rank(0);
  const ThreadBlockGroup group({0, 1, 2, 3});
  me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], group);
  return program;
}

CHORALE_PROGRAM(unit_tbg_reduce, Parameters&) {
  Program program = alone("reduce_test", 2, 1);
  const Rank me = program.rank(0);
  const BaseBuffer in = me.get_input_buffer();
  const ThreadBlockGroup group({0, 1, 2, 3});
  me.reduce(in[0], {in[1]}, group, me.get_output_buffer()[0]);
  return program;
}

CHORALE_PROGRAM(unit_tbg_reduce_fuse, Parameters&) {
  Program program = alone("reduce_test", 3, 2);
  const Rank me = program.rank(0);
  const BaseBuffer in = me.get_input_buffer();
  const ThreadBlockGroup group({0, 1, 2, 3});
  me.reduce(in[0], {in[1], in[2]}, group, me.get_output_buffer()[0]);
  return program;
}
