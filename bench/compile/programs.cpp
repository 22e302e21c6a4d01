// The programs that the baseline timed, call for call: baselines/mscclpp_compile.tsv has their times under
// MSCCL++'s DSL, and its plans for 2, 4 and 8 ranks say what they do.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

namespace {

int ranks_of(Parameters& with) { return with("ranks", 8, "number of GPUs", {.min = 2, .max = 1024}); }

/// `rank`'s peers in rank order.
std::vector<int> peers_of(int rank, int ranks) {
  std::vector<int> peers;
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer != rank) peers.push_back(peer);
  }
  return peers;
}

/// The position of `peer` in peers_of(rank).
int slot(int rank, int peer) { return peer - (peer > rank); }

}  // namespace

// Every rank reduces its chunks from all peers and puts the sums to all of them, eight thread blocks each.
CHORALE_PROGRAM(allreduce, Parameters& with) {
  const int ranks = ranks_of(with), blocks = 8;
  Program program({.name = "allreduce",
                   .collective = AllReduce{.ranks = ranks, .chunk_factor = blocks, .inplace = true}});
  for (int rank = 0; rank < ranks; ++rank) {
    const BaseBuffer input = Rank(program, rank).get_input_buffer();
    for (int tb = 0; tb < blocks; ++tb) {
      std::vector<MemoryChannel> peers;
      for (const int peer : peers_of(rank, ranks)) peers.emplace_back(program, peer, rank);
      const int chunk = rank * blocks + tb;
      const auto remote = [&](const MemoryChannel& peer) {
        return program.rank(peer.dst_rank()).get_input_buffer()[chunk];
      };
      for (const MemoryChannel& peer : peers) peer.signal(tb, SyncType::both, true);
      for (const MemoryChannel& peer : peers) peer.wait(tb, SyncType::both, true);
      for (const MemoryChannel& peer : peers) peer.reduce(input[chunk], {remote(peer)}, tb);
      for (const MemoryChannel& peer : peers) peer.put(remote(peer), input[chunk], tb);
      for (const MemoryChannel& peer : peers) peer.signal(tb);
      for (const MemoryChannel& peer : peers) peer.wait(tb);
    }
  }
  return program;
}

// The same with packets, a thread block for every chunk of the rank.
CHORALE_PROGRAM(allreduce_pkt, Parameters& with) {
  const int ranks = ranks_of(with);
  Program program({.name = "allreduce_pkt",
                   .collective = AllReduce{.ranks = ranks, .chunk_factor = ranks, .inplace = true},
                   .protocol = Protocol::LL,
                   .use_double_scratch_buffer = true});
  std::vector<Buffer> scratch;
  for (int rank = 0; rank < ranks; ++rank) scratch.emplace_back(program, rank, 2 * (ranks - 1) * ranks);
  // The second half of scratch holds the peers' sums.
  const auto sums = [&](int rank, int from) { return (ranks - 1 + slot(rank, from)) * ranks; };
  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const BaseBuffer input = me.get_input_buffer();
    std::vector<MemoryChannel> peers;
    for (const int peer : peers_of(rank, ranks)) peers.emplace_back(program, peer, rank);
    for (int k = 0; k < ranks - 1; ++k) {
      const auto to = int(peers[k].dst_rank()), at = slot(to, rank) * ranks;
      peers[k].put_packets(scratch[to][{at, at + ranks}], input[{to * ranks, (to + 1) * ranks}], k);
    }
    for (int tb = 0; tb < ranks; ++tb) {
      const Chunk mine = input[rank * ranks + tb];
      std::vector<Chunk> packets;
      for (int k = 0; k < ranks - 1; ++k) packets.push_back(scratch[rank][k * ranks + tb]);
      me.reduce(mine, packets, tb, std::nullopt, ReduceOp::sum, true);
      for (const MemoryChannel& peer : peers)
        peer.put_packets(scratch[peer.dst_rank()][sums(int(peer.dst_rank()), rank) + tb], mine, tb);
    }
    for (const MemoryChannel& peer : peers) {
      const auto from = int(peer.dst_rank()), at = sums(rank, from);
      me.unpack_packets(input[{from * ranks, (from + 1) * ranks}], scratch[rank][{at, at + ranks}], from);
    }
  }
  return program;
}

// A thread block for every peer that packets go to, and one for every peer that they come from.
CHORALE_PROGRAM(allgather_pkt, Parameters& with) {
  const int ranks = ranks_of(with);
  Program program({.name = "allgather_pkt",
                   .collective = AllGather{.ranks = ranks, .chunk_factor = 1, .inplace = true},
                   .protocol = Protocol::LL,
                   .use_double_scratch_buffer = true});
  std::vector<Buffer> scratch;
  for (int rank = 0; rank < ranks; ++rank) scratch.emplace_back(program, rank, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const BaseBuffer output = me.get_output_buffer();
    for (const int peer : peers_of(rank, ranks)) {
      MemoryChannel to(program, peer, rank);
      to.put_packets(scratch[peer][rank], output[rank], slot(rank, peer));
      me.unpack_packets(output[peer], scratch[rank][peer], ranks - 1 + slot(rank, peer));
    }
  }
  return program;
}

// One thread block puts the rank's part to all peers between two handshakes, in 32 instances.
CHORALE_PROGRAM(allgather_ring_i32, Parameters& with) {
  const int ranks = ranks_of(with);
  Program program({.name = "allgather_ring",
                   .collective = AllGather{.ranks = ranks, .chunk_factor = 1, .inplace = true},
                   .instances = 32});
  for (int rank = 0; rank < ranks; ++rank) {
    const Chunk mine = Rank(program, rank).get_output_buffer()[rank];
    std::vector<MemoryChannel> peers;
    for (const int peer : peers_of(rank, ranks)) peers.emplace_back(program, peer, rank);
    const auto handshake = [&] {
      for (const MemoryChannel& peer : peers) peer.signal(0, SyncType::both, true);
      for (const MemoryChannel& peer : peers) peer.wait(0, SyncType::both, true);
    };
    handshake();
    for (const MemoryChannel& peer : peers)
      peer.put(program.rank(peer.dst_rank()).get_output_buffer()[rank], mine, 0);
    handshake();
  }
  return program;
}
