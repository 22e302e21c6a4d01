// These are MSCCL++'s all-to-alls of one node. In place, data that arrives waits in scratch until the data
// that it replaces was sent.

#include "share.hpp"

using namespace chorale::dsl;
using namespace ported;

namespace {

AllToAll exchange(int ranks, bool inplace) { return {.ranks = ranks, .chunk_factor = 1, .inplace = inplace}; }

int ranks_of(Parameters& with) { return with("ranks", 2, "number of GPUs", {.min = 2, .max = 64}); }

/// Returns a chunk of scratch for every peer, by rank.
std::vector<Buffer> slots_of(Program& program, int ranks) {
  std::vector<Buffer> slots;
  for (int rank = 0; rank < ranks; ++rank) slots.push_back({program, rank, ranks - 1});
  return slots;
}

}  // namespace

// This one has a thread block for every peer.
CHORALE_PROGRAM(single_node_alltoall, Parameters& with) {
  const int ranks = ranks_of(with);
  Program program({.name = "alltoall", .collective = exchange(ranks, true), .instances = 2});
  const std::vector<Buffer> slots = slots_of(program, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const Rank me = program.rank(rank);
    const BaseBuffer in = me.get_input_buffer();
    for (const int peer : others(rank, 0, ranks)) {
      const int tb = slot(peer, rank);
      const MemoryChannel channel(program, peer, rank);
      enter(channel, tb);
      channel.put(slots[peer][slot(rank, peer)], in[peer], tb);
      leave(channel, tb);
      me.copy(in[peer], slots[rank][slot(peer, rank)], tb);
    }
  }
  return program;
}

// This one uses packets.
CHORALE_PROGRAM(single_node_alltoall_pkt, Parameters& with) {
  const int ranks = ranks_of(with);
  Program program({.name = "alltoall_pkt",
                   .collective = exchange(ranks, true),
                   .protocol = Protocol::LL,
                   .instances = 2,
                   .use_double_scratch_buffer = true});
  const std::vector<Buffer> slots = slots_of(program, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const Rank me = program.rank(rank);
    const BaseBuffer in = me.get_input_buffer();
    for (const int peer : others(rank, 0, ranks)) {
      const int tb = slot(peer, rank);
      MemoryChannel(program, peer, rank).put_packets(slots[peer][slot(rank, peer)], in[peer], tb);
      me.unpack_packets(in[peer], slots[rank][slot(peer, rank)], tb);
    }
  }
  return program;
}

// One thread block sends to the next rank, then to the one after it, and so on. Another one receives. A
// semaphore says that the input was sent and may be overwritten.
CHORALE_PROGRAM(single_node_alltoall_ring, Parameters& with) {
  const int ranks = ranks_of(with);
  Program program({.name = "alltoall_ring", .collective = exchange(ranks, true), .instances = 16});
  const std::vector<Buffer> slots = slots_of(program, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const Rank me = program.rank(rank);
    const BaseBuffer in = me.get_input_buffer();
    const std::vector<int> peers = others(rank, 0, ranks);
    const std::vector<MemoryChannel> data = channels_to(program, peers, rank),
                                     ready = channels_to(program, peers, rank);
    const Semaphore sent(program, rank, 0);
    sync(ready, 0, true);
    for (int step = 1; step < ranks; ++step) {
      const int to = (rank + step) % ranks;
      const MemoryChannel& channel = data[slot(to, rank)];
      channel.put(slots[to][slot(rank, to)], in[to], 0);
      channel.signal(0);
    }
    sent.release(0);

    sent.acquire(1);
    for (int step = 1; step < ranks; ++step) {
      const int from = (rank - step + ranks) % ranks;
      data[slot(from, rank)].wait(1);
      me.copy(in[from], slots[rank][slot(from, rank)], 1);
    }
  }
  return program;
}

// This one runs out of place, where nothing is overwritten.
CHORALE_PROGRAM(single_node_alltoall_ring_oop, Parameters& with) {
  const int ranks = ranks_of(with);
  Program program({.name = "alltoall_ring_oop", .collective = exchange(ranks, false), .instances = 16});
  const std::vector<Buffer> slots = slots_of(program, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const Rank me = program.rank(rank);
    const BaseBuffer in = me.get_input_buffer(), out = me.get_output_buffer();
    const std::vector<int> peers = others(rank, 0, ranks);
    const std::vector<MemoryChannel> data = channels_to(program, peers, rank),
                                     ready = channels_to(program, peers, rank);
    sync(ready, 0, true);
    for (int step = 1; step < ranks; ++step) {
      const int to = (rank + step) % ranks;
      const MemoryChannel& channel = data[slot(to, rank)];
      channel.put(slots[to][slot(rank, to)], in[to], 0);
      channel.signal(0, SyncType::before);
    }
    me.copy(out[rank], in[rank], 0);

    for (int step = 1; step < ranks; ++step) {
      const int from = (rank - step + ranks) % ranks;
      data[slot(from, rank)].wait(1, SyncType::after);
      me.copy(out[from], slots[rank][slot(from, rank)], 1);
    }
  }
  return program;
}
