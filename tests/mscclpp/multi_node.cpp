// These are MSCCL++'s programs for several nodes: memory channels inside a node, port channels between nodes.

#include <optional>

#include "share.hpp"

using namespace chorale::dsl;
using namespace ported;

namespace {

int gpus_per_node(Parameters& with, int fallback) {
  return with("gpus_per_node", fallback, "GPUs of a node", {.min = 1, .max = 64});
}

/// Holds the channels of a ring, each made at both of its ends. So the channel that leads out of a rank is
/// the other end of the one on which the next rank receives, even if two ranks are each other's next.
struct Ring {
  std::vector<PortChannel> to_next, from_last;

  /// \param next  by rank: the rank that follows it in the ring
  Ring(Program& program, const std::vector<int>& next) {
    std::vector<std::optional<PortChannel>> back(next.size());
    for (int rank = 0; rank < int(next.size()); ++rank) {
      to_next.push_back({program, next[rank], rank});
      back[next[rank]] = PortChannel(program, rank, next[rank]);
    }
    for (const std::optional<PortChannel>& channel : back) from_last.push_back(*channel);
  }
};

/// Describes a rank's place among two nodes: its node, its peers in it, and the rank with its position in the
/// other node.
struct Place {
  int gpus, rank;
  int first() const { return rank / gpus * gpus; }
  int partner() const { return (rank + gpus) % (2 * gpus); }
  std::vector<int> peers() const { return others(rank, first(), first() + gpus); }
};

}  // namespace

// Every rank sends to its node and to its partner, and forwards data from the partner to its node.
CHORALE_PROGRAM(multi_node_allgather, Parameters& with) {
  const int gpus = gpus_per_node(with, 2), ranks = 2 * gpus;
  Program program(
      {.name = "allgather", .collective = AllGather{.ranks = ranks, .chunk_factor = 1, .inplace = true}});
  const auto output = [&](int64_t rank) { return program.rank(rank).get_output_buffer(); };
  for (int rank = 0; rank < ranks; ++rank) {
    const Place place{gpus, rank};
    const int far = place.partner();
    const std::vector<MemoryChannel> peers = channels_to(program, place.peers(), rank);
    const PortChannel partner(program, far, rank);
    const auto share = [&](int part) {
      for (const MemoryChannel& peer : peers) peer.put(output(peer.dst_rank())[part], output(rank)[part], 0);
    };
    sync(peers, 0, true);
    share(rank);
    partner.signal(0);
    partner.wait(0);
    partner.put_with_signal_and_flush(output(far)[rank], output(rank)[rank], 0);
    partner.wait(0, SyncType::after);
    share(far);
    sync(peers, 0, false);
  }
  return program;
}

// This one uses packets: each thread block forwards to one peer as soon as the packets have arrived.
CHORALE_PROGRAM(multi_node_allgather_pkt, Parameters& with) {
  const int gpus = gpus_per_node(with, 2), ranks = 2 * gpus;
  Program program({.name = "allgather_pkt",
                   .collective = AllGather{.ranks = ranks, .chunk_factor = 1, .inplace = true},
                   .protocol = Protocol::LL,
                   .use_double_scratch_buffer = true});
  std::vector<Buffer> slots;
  for (int rank = 0; rank < ranks; ++rank) slots.push_back({program, rank, ranks});
  for (int rank = 0; rank < ranks; ++rank) {
    const Place place{gpus, rank};
    const int far = place.partner();
    const Rank me = program.rank(rank);
    const BaseBuffer out = me.get_output_buffer();
    me.copy_packets(slots[rank][rank], out[rank], rank);
    const PortChannel partner(program, far, rank);
    partner.read_put_packets(slots[far][rank], slots[rank][rank], rank % gpus);
    for (const int part : {rank, far}) {
      for (const MemoryChannel& peer : channels_to(program, place.peers(), rank)) {
        const int64_t to = peer.dst_rank();
        peer.read_put_packets(slots[to][part], slots[rank][part], to % gpus);
      }
    }
    for (int step = 1; step < ranks; ++step) {
      const int from = (rank + step) % ranks;
      me.unpack_packets(out[from], slots[rank][from], step);
    }
  }
  return program;
}

// This one goes out of place through scratch, round a ring of all ranks. One thread block moves the parts,
// and the others copy each to the output while the next one is in transit.
CHORALE_PROGRAM(multi_node_allgather_tbg, Parameters& with) {
  const int ranks = with("ranks", 4, "number of GPUs", {.min = 2, .max = 64});
  const int copiers =
      gpus_per_node(with, 2) * with("tbg_size", 1, "thread blocks for each GPU of a node", {.min = 1});
  Program program({.name = "allgather_tbg", .collective = AllGather{.ranks = ranks, .chunk_factor = 1}});
  std::vector<Buffer> parts;
  std::vector<int> next, blocks{0}, copying;
  for (int rank = 0; rank < ranks; ++rank) {
    parts.push_back({program, rank, ranks});
    next.push_back((rank + 1) % ranks);
  }
  for (int tb = 1; tb <= copiers; ++tb) {
    blocks.push_back(tb);
    copying.push_back(tb);
  }
  const ThreadBlockGroup group(copying);
  const Ring ring(program, next);

  for (int rank = 0; rank < ranks; ++rank) {
    const Rank me = program.rank(rank);
    const PortChannel &out = ring.to_next[rank], &in = ring.from_last[rank];
    in.signal(0, SyncType::none);  // my scratch may be written
    out.wait(0, SyncType::after);
    for (int step = 0; step < ranks; ++step) {
      const int part = (rank - step + ranks) % ranks;
      const Chunk held = step == 0 ? me.get_input_buffer()[0] : parts[rank][part];
      if (step + 1 < ranks) {
        out.put_with_signal_and_flush(parts[next[rank]][part], held, 0);
        in.wait(0);
      }
      me.copy(me.get_output_buffer()[part], held, group);
      if (step + 1 < ranks) me.barrier(blocks);
    }
  }
  return program;
}

// Every rank sums two parts over its node, its own and its partner's, and sends the partner's sum to the
// partner.
CHORALE_PROGRAM(multi_node_reducescatter, Parameters& with) {
  const int gpus = gpus_per_node(with, 2), ranks = 2 * gpus;
  Program program({.name = "reducescatter",
                   .collective = ReduceScatter{.ranks = ranks, .chunk_factor = 1, .inplace = true}});
  std::vector<Buffer> slots;
  for (int rank = 0; rank < ranks; ++rank) slots.push_back({program, rank, 1});
  const auto input = [&](int64_t rank) { return program.rank(rank).get_input_buffer(); };
  for (int rank = 0; rank < ranks; ++rank) {
    const Place place{gpus, rank};
    const int far = place.partner();
    const std::vector<MemoryChannel> peers = channels_to(program, place.peers(), rank);
    const PortChannel partner(program, far, rank);
    sync(peers, 0, true);
    for (const int part : {rank, far}) {
      for (const MemoryChannel& peer : peers)
        peer.reduce(input(rank)[part], {input(peer.dst_rank())[part]}, 0);
    }
    partner.signal(0);
    partner.wait(0);
    partner.put_with_signal(slots[far][0], input(rank)[far], 0);
    partner.wait(0, SyncType::after);
    program.rank(rank).reduce(input(rank)[rank], {slots[rank][0]}, 0);
    sync(peers, 0, true);
  }
  return program;
}

// Every rank sends its input to the next rank of its group. A group has the ranks whose numbers agree in the
// bits of split_mask.
CHORALE_PROGRAM(multi_node_send_recv, Parameters& with) {
  const int ranks = with("nodes", 2, "number of nodes", {.min = 1, .max = 64}) * gpus_per_node(with, 1);
  const int mask = with("split_mask", 0, "bits in which the ranks of a group agree", {.min = 0});
  Program program({.name = "send_recv",
                   .collective = SendRecv{.ranks = ranks, .chunk_factor = 1},
                   .instances = with("instances", 1, "thread blocks that split the message", {.min = 1})});
  std::vector<int> next;
  for (int rank = 0; rank < ranks; ++rank) {
    int to = (rank + 1) % ranks;
    while ((to & mask) != (rank & mask)) to = (to + 1) % ranks;
    next.push_back(to);
  }
  const Ring ring(program, next);
  for (int rank = 0; rank < ranks; ++rank) {
    ring.from_last[rank].signal(0, SyncType::none);  // my output may be written
    ring.to_next[rank].wait(0, SyncType::after);
    ring.to_next[rank].put_with_signal(program.rank(next[rank]).get_output_buffer()[0],
                                       program.rank(rank).get_input_buffer()[0], 0);
    ring.from_last[rank].wait(0, SyncType::none);
  }
  return program;
}
