// These are MSCCL++'s all-gathers of one node. All are in place: a rank's input is its part of its output.

#include "share.hpp"

using namespace chorale::dsl;
using namespace ported;

namespace {

AllGather gather(int ranks) { return {.ranks = ranks, .chunk_factor = 1, .inplace = true}; }

int ranks_of(Parameters& with) { return with("ranks", 2, "number of GPUs", {.min = 2, .max = 1024}); }

}  // namespace

// This one serves one peer after the other.
CHORALE_PROGRAM(single_node_allgather, Parameters& with) {
  const int ranks = ranks_of(with);
  Program program({.name = "allgather", .collective = gather(ranks)});
  for (int rank = 0; rank < ranks; ++rank) {
    const Chunk mine = program.rank(rank).get_output_buffer()[rank];
    for (const MemoryChannel& peer : channels_to(program, others(rank, 0, ranks), rank)) {
      enter(peer, 0);
      peer.put(program.rank(peer.dst_rank()).get_output_buffer()[rank], mine, 0);
      leave(peer, 0);
    }
  }
  return program;
}

// This one does the same with four thread blocks that share every put.
CHORALE_PROGRAM(single_node_allgather_tbg, Parameters& with) {
  const int ranks = ranks_of(with);
  Program program({.name = "allgather_tbg", .collective = gather(ranks)});
  const ThreadBlockGroup group({0, 1, 2, 3});
  for (int rank = 0; rank < ranks; ++rank) {
    const Rank me = program.rank(rank);
    for (const MemoryChannel& peer : channels_to(program, others(rank, 0, ranks), rank)) {
      enter(peer, 0);
      me.barrier(group.tb_list());
      peer.put(program.rank(peer.dst_rank()).get_output_buffer()[rank], me.get_output_buffer()[rank], group);
      me.barrier(group.tb_list());
      leave(peer, 0);
    }
  }
  return program;
}

// This one serves all peers at once, beginning with the next rank.
CHORALE_PROGRAM(single_node_allgather_ring, Parameters& with) {
  const int ranks = ranks_of(with);
  Program program({.name = "allgather_ring", .collective = gather(ranks), .instances = 32});
  for (int rank = 0; rank < ranks; ++rank) {
    const Chunk mine = program.rank(rank).get_output_buffer()[rank];
    const std::vector<MemoryChannel> peers = channels_to(program, others(rank, 0, ranks), rank);
    sync(peers, 0, true);
    for (int step = 1; step < ranks; ++step) {
      const int next = (rank + step) % ranks;
      peers[slot(next, rank)].put(program.rank(next).get_output_buffer()[rank], mine, 0);
    }
    sync(peers, 0, true);
  }
  return program;
}

// This one uses packets, with a thread block for every packet transfer that is sent, and one for every
// transfer that is received.
CHORALE_PROGRAM(single_node_allgather_pkt, Parameters& with) {
  const int ranks = ranks_of(with);
  Program program({.name = "allgather_pkt",
                   .collective = gather(ranks),
                   .protocol = Protocol::LL,
                   .use_double_scratch_buffer = true});
  std::vector<Buffer> slots;
  for (int rank = 0; rank < ranks; ++rank) slots.push_back({program, rank, ranks});
  for (int rank = 0; rank < ranks; ++rank) {
    const Rank me = program.rank(rank);
    const BaseBuffer out = me.get_output_buffer();
    for (int step = 1; step < ranks; ++step) {
      const int peer = (rank + step) % ranks;
      MemoryChannel(program, peer, rank).put_packets(slots[peer][rank], out[rank], step - 1);
      me.unpack_packets(out[peer], slots[rank][peer], ranks - 1 + step - 1);
    }
  }
  return program;
}

// In this one a switch stores every rank's part to all ranks.
CHORALE_PROGRAM(single_node_allgather_nvls, Parameters& with) {
  const int ranks = ranks_of(with);
  Program program({.name = "ag_nvls",
                   .collective = gather(ranks),
                   .instances = with("instances", 1, "thread blocks that split every part", {.min = 1}),
                   .threads_per_block = 256});
  const SwitchChannel outputs(program, all(ranks), BufferType::output);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<MemoryChannel> peers = channels_to(program, others(rank, 0, ranks), rank);
    sync(peers, 0, true);
    outputs.at_rank(rank).broadcast(program.rank(rank).get_output_buffer()[rank], rank, 1, 0);
    sync(peers, 0, true);
  }
  return program;
}

// This one stores packets, which need no signals. The threads of a block need not synchronise: each thread
// waits for the packets that it reads, and what the switch stores to a rank's own slot is already there.
CHORALE_PROGRAM(single_node_allgather_nvls_pkt, Parameters& with) {
  const int ranks = ranks_of(with);
  Program program({.name = "ag_nvls_pkt",
                   .collective = gather(ranks),
                   .protocol = Protocol::LL,
                   .instances = with("instances", 1, "thread blocks that split every part", {.min = 1}),
                   .auto_sync = false,
                   .threads_per_block = 256,
                   .use_double_scratch_buffer = true,
                   .min_message_size = with("min_message_size", uint64_t(1) << 10, "bytes"),
                   .max_message_size = 1 << 20});
  std::vector<Buffer> slots;
  for (int rank = 0; rank < ranks; ++rank) slots.push_back({program, rank, ranks});
  const SwitchChannel scratch(program, all(ranks), BufferType::scratch);
  for (int rank = 0; rank < ranks; ++rank) {
    const Rank me = program.rank(rank);
    const BaseBuffer out = me.get_output_buffer();
    me.copy_packets(slots[rank][rank], out[rank], 0);
    scratch.at_rank(rank).broadcast_packets(slots[rank][rank], rank, 1, 0);
    for (int peer = 0; peer < ranks; ++peer) me.unpack_packets(out[peer], slots[rank][peer], peer);
  }
  return program;
}
