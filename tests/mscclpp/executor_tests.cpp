// These are MSCCL++'s tests of its executor: small collectives that together use every operation. If two
// ranks do different things, each shows another way to the same result.

#include "share.hpp"

using namespace chorale::dsl;
using namespace ported;

namespace {

AllReduce sum_of(int ranks, int chunk_factor = 1) {
  return {.ranks = ranks, .chunk_factor = chunk_factor, .inplace = true};
}

/// Builds a program of two ranks with packets. `blocks(k)` adds the k-th of three steps.
template <class Blocks>
Program reduce_packets(const char* name, Blocks&& blocks) {
  Program program(
      {.name = name, .collective = sum_of(2), .protocol = Protocol::LL, .use_double_scratch_buffer = true});
  const Rank left = program.rank(0), right = program.rank(1);
  const BaseBuffer l = left.get_input_buffer(), r = right.get_input_buffer();
  const Buffer sl(program, 0, 3), sr(program, 1, 3);
  const MemoryChannel to_right(program, 1, 0), to_left(program, 0, 1);

  to_right.put_packets(sr[1], l[1], blocks(0));
  left.reduce(l[0], {sl[0]}, blocks(1), l[0], ReduceOp::sum, true);
  to_right.put_packets(sr[0], l[0], blocks(1));
  left.unpack_packets(l[1], sl[1], blocks(2));

  // The sum is kept as packets, and these are forwarded.
  to_left.put_packets(sl[0], r[0], blocks(0));
  right.reduce(r[1], {sr[1]}, blocks(1), r[1], ReduceOp::sum, true);
  right.copy_packets(sr[2], r[1], blocks(1));
  to_left.read_put_packets(sl[1], sr[2], blocks(1));
  right.unpack_packets(r[0], sr[0], blocks(2));
  return program;
}

/// All peers synchronise, sum and store a part of the input each on the switch, and synchronise again.
template <class Body>
Program reduce_on_switch(const char* name, Parameters& with, Body&& body) {
  const int ranks = with("ranks", 2, "number of GPUs", {.min = 2, .max = 8});
  Program program({.name = with("name", name, "of the plan"), .collective = sum_of(ranks)});
  const SwitchChannel inputs(program, all(ranks), BufferType::input);
  for (int rank = 0; rank < ranks; ++rank) {
    const Chunk mine = program.rank(rank).get_input_buffer()[rank];
    const std::vector<MemoryChannel> peers = channels_to(program, others(rank, 0, ranks), rank);
    sync(peers, 0, true);
    body(program, [&] {
      inputs.at_rank(rank).reduce(rank, 1, mine, 0);
      inputs.at_rank(rank).broadcast(mine, rank, 1, 0);
    });
    sync(peers, 0, true);
  }
  return program;
}

}  // namespace

// Rank 0 sums the first half, once from the peer's memory and once from a copy that it receives. Rank 1 sums
// the other half and puts the result.
CHORALE_PROGRAM(executor_reduce, Parameters&) {
  Program program({.name = "reduce", .collective = sum_of(2, 2)});
  const Rank left = program.rank(0), right = program.rank(1);
  const BaseBuffer l = left.get_input_buffer(), r = right.get_input_buffer();
  const Buffer sl(program, 0, 4), sr(program, 1, 4);
  const MemoryChannel to_right(program, 1, 0), to_left(program, 0, 1);

  left.copy(sl[{2, 4}], l[{2, 4}], 0);
  sync({to_right}, 0, false);
  to_right.reduce(l[0], {sr[0]}, 0);
  to_right.put(r[0], l[0], 0);
  to_right.get(sl[1], sr[1], 0);
  left.reduce(l[1], {sl[1]}, 0);
  to_right.put(r[1], l[1], 0);
  sync({to_right}, 0, false);

  right.copy(sr[{0, 2}], r[{0, 2}], 0);
  sync({to_left}, 0, false);
  to_left.reduce(r[{2, 4}], {l[{2, 4}]}, 0);
  right.copy(sr[{2, 4}], r[{2, 4}], 0);
  to_left.put(l[{2, 4}], sr[{2, 4}], 0);
  sync({to_left}, 0, false);
  return program;
}

CHORALE_PROGRAM(executor_reduce_pack, Parameters&) {
  return reduce_packets("reduce_pack", [](int step) { return step; });
}

// Two thread blocks share every step.
CHORALE_PROGRAM(executor_reduce_pack_tbg, Parameters&) {
  const ThreadBlockGroup groups[] = {{0, 1}, {2, 3}, {4, 5}};
  return reduce_packets("reduce_pack_tbg", [&](int step) -> const ThreadBlockGroup& { return groups[step]; });
}

// This is an all-gather of two ranks: rank 0 puts packets, rank 1 makes packets and forwards them.
CHORALE_PROGRAM(executor_transfer_pack, Parameters&) {
  Program program({.name = "transfer_pack",
                   .collective = AllGather{.ranks = 2, .chunk_factor = 1, .inplace = true},
                   .protocol = Protocol::LL,
                   .use_double_scratch_buffer = true});
  const Rank left = program.rank(0), right = program.rank(1);
  const BaseBuffer l = left.get_output_buffer(), r = right.get_output_buffer();
  const Buffer sl(program, 0, 2), sr(program, 1, 2);
  MemoryChannel(program, 1, 0).put_packets(sr[0], l[0], 0);
  left.unpack_packets(l[1], sl[1], 1);
  right.copy_packets(sr[1], r[1], 0);
  MemoryChannel(program, 0, 1).read_put_packets(sl[1], sr[1], 1);
  right.unpack_packets(r[0], sr[0], 2);
  return program;
}

CHORALE_PROGRAM(executor_reduce_nvls, Parameters& with) {
  return reduce_on_switch("reduce_nvls", with, [](Program&, auto&& sum) { sum(); });
}

CHORALE_PROGRAM(executor_reduce_nvls_pipeline, Parameters& with) {
  return reduce_on_switch("reduce_nvls_pipeline", with,
                          [](Program& program, auto&& sum) { program.loop(1 << 20, 1, sum); });
}
