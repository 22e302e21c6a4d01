// These are MSCCL++'s all-reduces of one node. All except the pipeline sum in the input, which is also the
// output.

#include "share.hpp"

using namespace chorale::dsl;
using namespace ported;

namespace {

AllReduce sum_of(int ranks, int chunk_factor = 1) {
  return {.ranks = ranks, .chunk_factor = chunk_factor, .inplace = true};
}

int ranks_of(Parameters& with) { return with("ranks", 2, "number of GPUs", {.min = 2, .max = 1024}); }

/// Reads a part of every peer's input, adds it to the rank's own and writes the sum to every peer.
void sum_and_store(Program& program, const std::vector<MemoryChannel>& peers, int rank, int64_t part,
                   int64_t tb) {
  const Chunk mine = program.rank(rank).get_input_buffer()[part];
  const auto theirs = [&](const MemoryChannel& peer) {
    return program.rank(peer.dst_rank()).get_input_buffer()[part];
  };
  for (const MemoryChannel& peer : peers) peer.reduce(mine, {theirs(peer)}, tb);
  for (const MemoryChannel& peer : peers) peer.put(theirs(peer), mine, tb);
}

}  // namespace

// Every rank sums its part of all inputs and stores it to all ranks, with one operation per thread block.
CHORALE_PROGRAM(single_node_allreduce, Parameters& with) {
  const int ranks = ranks_of(with), blocks = 8;
  Program program({.name = "allreduce", .collective = sum_of(ranks, blocks)});
  for (int rank = 0; rank < ranks; ++rank) {
    for (int tb = 0; tb < blocks; ++tb) {
      const std::vector<MemoryChannel> peers = channels_to(program, others(rank, 0, ranks), rank);
      sync(peers, tb, true);
      sum_and_store(program, peers, rank, rank * blocks + tb, tb);
      sync(peers, tb, false);
    }
  }
  return program;
}

// This one is for two ranks, as an older version of their DSL wrote it, with fewer synchronisations of
// threads.
CHORALE_PROGRAM(execution_file_allreduce, Parameters&) {
  const int blocks = 8;
  Program program({.name = "allreduce", .collective = sum_of(2, blocks)});
  for (int rank = 0; rank < 2; ++rank) {
    for (int tb = 0; tb < blocks; ++tb) {
      const MemoryChannel peer(program, 1 - rank, rank);
      peer.signal(tb, SyncType::none, true);
      peer.wait(tb, SyncType::after, true);
      sum_and_store(program, {peer}, rank, rank * blocks + tb, tb);
      peer.signal(tb, SyncType::before);
      peer.wait(tb, SyncType::none);
    }
  }
  return program;
}

// This is the shortest one with packets, with one thread block.
CHORALE_PROGRAM(single_node_allreduce_naivy, Parameters& with) {
  const int ranks = ranks_of(with);
  Program program({.name = "allreduce_naivy", .collective = sum_of(ranks), .protocol = Protocol::LL});
  std::vector<Buffer> inputs, sums;  // of each rank, one per sender
  for (int rank = 0; rank < ranks; ++rank) {
    inputs.push_back({program, rank, ranks});
    sums.push_back({program, rank, ranks});
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const Rank me = program.rank(rank);
    const BaseBuffer in = me.get_input_buffer();
    const std::vector<MemoryChannel> peers = channels_to(program, others(rank, 0, ranks), rank);
    std::vector<Chunk> arrived;
    for (const MemoryChannel& peer : peers) {
      peer.put_packets(inputs[peer.dst_rank()][rank], in[peer.dst_rank()], 0);
      arrived.push_back(inputs[rank][peer.dst_rank()]);
    }
    me.reduce(in[rank], arrived, 0, in[rank], ReduceOp::sum, true);
    for (const MemoryChannel& peer : peers) peer.put_packets(sums[peer.dst_rank()][rank], in[rank], 0);
    for (const MemoryChannel& peer : peers)
      me.unpack_packets(in[peer.dst_rank()], sums[rank][peer.dst_rank()], 0);
  }
  return program;
}

// This one has a thread block for each rank. It sends packets to one peer, sums a share of the rank's own
// part, and receives a part from one peer. No thread writes an element before its packet has arrived, and the
// peer has sent that packet after it got the old element. So auto_sync would only add waiting.
CHORALE_PROGRAM(single_node_allreduce_pkt, Parameters& with) {
  const int ranks = ranks_of(with);
  Program program({.name = "allreduce_pkt",
                   .collective = sum_of(ranks, ranks),
                   .protocol = Protocol::LL,
                   .auto_sync = false,
                   .use_double_scratch_buffer = true});
  std::vector<Buffer> inputs, sums;  // of each rank, a part of every peer
  for (int rank = 0; rank < ranks; ++rank) {
    inputs.push_back({program, rank, (ranks - 1) * ranks});
    sums.push_back({program, rank, (ranks - 1) * ranks});
  }
  const auto part = [&](const BaseBuffer& buffer, int of) {
    return buffer.slice(of * ranks, (of + 1) * ranks);
  };

  for (int rank = 0; rank < ranks; ++rank) {
    const Rank me = program.rank(rank);
    const BaseBuffer in = me.get_input_buffer();
    const std::vector<MemoryChannel> peers = channels_to(program, others(rank, 0, ranks), rank);
    for (const MemoryChannel& peer : peers) {
      const int to = int(peer.dst_rank());
      peer.put_packets(part(inputs[to], slot(rank, to)), part(in, to), slot(to, rank));
    }
    for (int tb = 0; tb < ranks; ++tb) {
      std::vector<Chunk> arrived;
      for (int from = 0; from < ranks - 1; ++from) arrived.push_back(inputs[rank][from * ranks + tb]);
      const Chunk mine = in[rank * ranks + tb];
      me.reduce(mine, arrived, tb, mine, ReduceOp::sum, true);
      for (const MemoryChannel& peer : peers) {
        const int to = int(peer.dst_rank());
        peer.put_packets(sums[to][slot(rank, to) * ranks + tb], mine, tb);
      }
    }
    for (const int from : others(rank, 0, ranks)) {
      me.unpack_packets(part(in, from), part(sums[rank], slot(from, rank)), from);
    }
  }
  return program;
}

// Three thread blocks move a large message through a small scratch buffer, unit by unit. One copies in, one
// sums on the switch, one copies out. Semaphores hand the units on.
CHORALE_PROGRAM(single_node_allreduce_pipeline, Parameters& with) {
  const int ranks = ranks_of(with);
  Program program({.name = "allreduce_pipeline", .collective = sum_of(ranks), .reuse_resources = true});
  std::vector<Buffer> scratch;
  for (int rank = 0; rank < ranks; ++rank) scratch.push_back({program, rank, ranks});
  const SwitchChannel group(program, all(ranks), BufferType::scratch);
  for (int rank = 0; rank < ranks; ++rank) {
    const Rank me = program.rank(rank);
    const std::vector<int> peers = others(rank, 0, ranks);
    const std::vector<MemoryChannel> copied = channels_to(program, peers, rank),
                                     summed = channels_to(program, peers, rank);
    const Semaphore copied_in(program, rank, 0), stored(program, rank, 0);
    const LoopIterationContext loop(program, 1 << 20, 1);

    for (int part = 0; part < ranks; ++part) me.copy(scratch[rank][part], me.get_input_buffer()[part], 0);
    for (const MemoryChannel& peer : copied) peer.signal(0, SyncType::before);
    for (const MemoryChannel& peer : copied) peer.wait(0, SyncType::after);
    copied_in.release(0);

    copied_in.acquire(1, SyncType::after);
    group.at_rank(rank).reduce(rank, 1, scratch[rank][rank], 1);
    group.at_rank(rank).broadcast(scratch[rank][rank], rank, 1, 1);
    for (const MemoryChannel& peer : summed) peer.signal(1);
    stored.release(1);

    stored.acquire(2);
    for (const MemoryChannel& peer : summed) peer.wait(2);
    for (int part = 0; part < ranks; ++part) me.copy(me.get_output_buffer()[part], scratch[rank][part], 2);
  }
  return program;
}

// This does the same for four ranks in place, as an older version of their DSL wrote it. Up to 32 units are
// in flight.
CHORALE_PROGRAM(execution_file_allreduce_pipeline, Parameters&) {
  const int ranks = 4;
  Program program({.name = "allreduce_nvls", .collective = sum_of(ranks), .reuse_resources = true});
  std::vector<Buffer> scratch;
  for (int rank = 0; rank < ranks; ++rank) scratch.push_back({program, rank, ranks});
  const SwitchChannel group(program, all(ranks), BufferType::scratch);
  for (int rank = 0; rank < ranks; ++rank) {
    const Rank me = program.rank(rank);
    const BaseBuffer in = me.get_input_buffer();
    const std::vector<int> peers = others(rank, 0, ranks);
    const std::vector<MemoryChannel> copied = channels_to(program, peers, rank),
                                     summed = channels_to(program, peers, rank);
    const auto sync = [&](const std::vector<MemoryChannel>& channels, int tb, SyncType before) {
      for (const MemoryChannel& peer : channels) peer.signal(tb, before);
      for (const MemoryChannel& peer : channels) peer.wait(tb, SyncType::after);
    };
    const Semaphore copied_in(program, rank, 0), stored(program, rank, 0), free(program, rank, 32);
    const LoopIterationContext loop(program, 1 << 19, 1);

    free.acquire(0, SyncType::after);
    for (int part = 0; part < ranks; ++part) me.copy(scratch[rank][part], in[part], 0);
    sync(copied, 0, SyncType::before);
    copied_in.release(0, SyncType::none);

    copied_in.acquire(1, SyncType::after);
    group.at_rank(rank).reduce(rank, 1, scratch[rank][rank], 1);
    group.at_rank(rank).broadcast(scratch[rank][rank], rank, 1, 1);
    stored.release(1, SyncType::before);

    stored.acquire(2, SyncType::after);
    sync(summed, 2, SyncType::none);
    for (int part = 0; part < ranks; ++part) me.copy(in[part], scratch[rank][part], 2);
    free.release(2, SyncType::before);
  }
  return program;
}
