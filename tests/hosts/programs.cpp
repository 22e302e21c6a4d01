// The ranks of these programs are connected only by port channels, so that any of them may be on another
// host.

#include <chorale/dsl.hpp>

using namespace chorale::dsl;

namespace {

std::vector<PortChannel> to_all_others(Program& program, int rank, int ranks) {
  std::vector<PortChannel> peers;
  for (int i = 1; i < ranks; ++i) peers.push_back({program, (rank + i) % ranks, rank});
  return peers;
}

}  // namespace

// Uses each operation of port channels alone.
CHORALE_PROGRAM(hosts_put_signal_flush, Parameters& with) {
  const int ranks = with("ranks", 2, "number of ranks");
  const bool joined = with("joined", false, "put_with_signal");
  const int chunks = with("chunks", 1, "a rank's input has");
  Program program({.name = "hosts_put_signal_flush",
                   .collective = AllGather{.ranks = ranks, .chunk_factor = chunks},
                   .fuse = false});
  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const Chunk mine = me.get_input_buffer().slice(0, chunks);
    const auto place = [&](int at) {
      return Rank(program, at).get_output_buffer().slice(rank * chunks, (rank + 1) * chunks);
    };
    std::vector<PortChannel> peers = to_all_others(program, rank, ranks);
    me.copy(place(rank), mine, 0);
    for (PortChannel& peer : peers) peer.signal(0);
    for (PortChannel& peer : peers) peer.wait(0);
    for (PortChannel& peer : peers) {
      if (joined) {
        peer.put_with_signal(place(peer.dst_rank()), mine, 0);
      } else {
        peer.put(place(peer.dst_rank()), mine, 0);
        peer.signal(0);
      }
    }
    for (PortChannel& peer : peers) peer.flush(0);
    for (PortChannel& peer : peers) peer.wait(0);
  }
  return program;
}

// An exchange in every launch keeps the two banks apart.
CHORALE_PROGRAM(hosts_put_packets, Parameters& with) {
  const int ranks = with("ranks", 2, "number of ranks");
  Program program({.name = "hosts_put_packets",
                   .collective = AllGather{.ranks = ranks, .chunk_factor = 1},
                   .protocol = Protocol::LL,
                   .use_double_scratch_buffer = true});
  std::vector<Buffer> scratch;
  for (int rank = 0; rank < ranks; ++rank) scratch.push_back({program, rank, ranks});
  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    const Chunk mine = me.get_input_buffer()[0];
    std::vector<PortChannel> peers = to_all_others(program, rank, ranks);
    me.copy(me.get_output_buffer()[rank], mine, 0);
    for (PortChannel& peer : peers) peer.put_packets(scratch[size_t(peer.dst_rank())][rank], mine, 0);
    for (PortChannel& peer : peers)
      me.unpack_packets(me.get_output_buffer()[peer.dst_rank()], scratch[size_t(rank)][peer.dst_rank()], 0);
  }
  return program;
}

// Uses flushed memory again at once: the input goes round through the first chunk of scratch.
CHORALE_PROGRAM(hosts_reuse_after_flush, Parameters& with) {
  const int ranks = with("ranks", 2, "number of ranks");
  const int rounds = with("rounds", 8, "chunks that go through one chunk of scratch");
  Program program({.name = "hosts_reuse_after_flush",
                   .collective = AllGather{.ranks = ranks, .chunk_factor = rounds},
                   .fuse = false});
  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    Buffer room(program, rank, 1);
    std::vector<PortChannel> peers = to_all_others(program, rank, ranks);
    me.copy(me.get_output_buffer().slice(rank * rounds, (rank + 1) * rounds),
            me.get_input_buffer().slice(0, rounds), 0);
    for (PortChannel& peer : peers) peer.signal(0);
    for (PortChannel& peer : peers) peer.wait(0);
    for (int round = 0; round < rounds; ++round) {
      me.copy(room[0], me.get_input_buffer()[round], 0);
      for (PortChannel& peer : peers)
        peer.put(Rank(program, peer.dst_rank()).get_output_buffer()[rank * rounds + round], room[0], 0);
      for (PortChannel& peer : peers) peer.flush(0);
    }
    for (PortChannel& peer : peers) peer.signal(0);
    for (PortChannel& peer : peers) peer.wait(0);
  }
  return program;
}

// Rank 0 sends and receives nothing. Its launch ends when the others have its data.
CHORALE_PROGRAM(hosts_give, Parameters& with) {
  const int ranks = with("ranks", 2, "number of ranks");
  Program program({.name = "hosts_give",
                   .collective = Broadcast{.ranks = ranks},
                   .protocol = Protocol::LL,
                   .use_double_scratch_buffer = true});
  std::vector<Buffer> scratch;
  for (int rank = 0; rank < ranks; ++rank) scratch.push_back({program, rank, 1});
  Rank root(program, 0);
  root.copy(root.get_output_buffer()[0], root.get_input_buffer()[0], 0);
  for (int rank = 1; rank < ranks; ++rank) {
    Rank me(program, rank);
    PortChannel(program, rank, 0).put_packets(scratch[size_t(rank)][0], root.get_input_buffer()[0], 0);
    PortChannel(program, 0, rank);
    me.unpack_packets(me.get_output_buffer()[0], scratch[size_t(rank)][0], 0);
  }
  return program;
}

// Neighbours exchange over memory channels: 0 and 1, 2 and 3.
CHORALE_PROGRAM(hosts_within, Parameters& with) {
  const int ranks = with("ranks", 4, "number of ranks");
  const auto post = [](int64_t rank, int64_t) {
    return std::vector<Contribution>{{.rank = uint32_t(rank) ^ 1, .chunk = 0}};
  };
  Program program(
      {.name = "hosts_within", .collective = Custom{.ranks = ranks, .input = 1, .output = 1, .post = post}});
  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    MemoryChannel neighbour(program, rank ^ 1, rank);
    neighbour.signal(0);
    neighbour.wait(0);
    neighbour.put(Rank(program, rank ^ 1).get_output_buffer()[0], me.get_input_buffer()[0], 0);
    neighbour.signal(0);
    neighbour.wait(0);
  }
  return program;
}

// Uses a switch between ranks that are otherwise connected as ranks on different hosts are.
CHORALE_PROGRAM(hosts_by_switch, Parameters& with) {
  const int ranks = with("ranks", 2, "number of ranks");
  Program program({.name = "hosts_by_switch", .collective = AllReduce{.ranks = ranks, .chunk_factor = 1}});
  std::vector<int64_t> everybody;
  for (int rank = 0; rank < ranks; ++rank) everybody.push_back(rank);
  SwitchChannel all(program, everybody, BufferKind::input);
  for (int rank = 0; rank < ranks; ++rank) {
    Rank me(program, rank);
    std::vector<PortChannel> peers = to_all_others(program, rank, ranks);
    const auto sync = [&] {
      for (PortChannel& peer : peers) peer.signal(0);
      for (PortChannel& peer : peers) peer.wait(0);
    };
    sync();
    all.reduce(rank, 0, ranks, me.get_output_buffer().slice(0, ranks), 0);
    sync();
  }
  return program;
}

// Rank 0 puts, whether or not any rank is ready.
CHORALE_PROGRAM(hosts_put_unasked, Parameters& with) {
  const int ranks = with("ranks", 2, "number of ranks");
  Program program({.name = "hosts_put_unasked", .collective = Broadcast{.ranks = ranks}});
  Rank root(program, 0);
  PortChannel there(program, 1, 0), back(program, 0, 1);
  there.put(Rank(program, 1).get_output_buffer()[0], root.get_input_buffer()[0], 0);
  Rank(program, 1).copy(Rank(program, 1).get_output_buffer()[0], Rank(program, 1).get_output_buffer()[0], 0);
  return program;
}

// Rank 0 gathers, and sends all of its output at once: across the ends of the parts, with nothing after the
// last one.
CHORALE_PROGRAM(hosts_gather_and_give, Parameters& with) {
  const int ranks = with("ranks", 2, "number of ranks");
  const int chunks = with("chunks", 3, "a rank's input has");
  Program program(
      {.name = "hosts_gather_and_give", .collective = AllGather{.ranks = ranks, .chunk_factor = chunks}});
  const auto output = [&](int rank) { return Rank(program, rank).get_output_buffer(); };
  Rank root(program, 0);
  root.copy(output(0).slice(0, chunks), root.get_input_buffer().slice(0, chunks), 0);
  std::vector<PortChannel> others;
  for (int rank = 1; rank < ranks; ++rank) {
    others.emplace_back(program, rank, 0);
    PortChannel back(program, 0, rank);
    others.back().signal(0);  // my output may be written
    back.wait(0);
    back.put_with_signal(output(0).slice(rank * chunks, (rank + 1) * chunks),
                         Rank(program, rank).get_input_buffer().slice(0, chunks), 0);
    back.flush(0);
    back.wait(0);
  }
  for (PortChannel& other : others) other.wait(0);
  for (PortChannel& other : others)
    other.put_with_signal(output(other.dst_rank()).slice(0, ranks * chunks),
                          output(0).slice(0, ranks * chunks), 0);
  for (PortChannel& other : others) other.flush(0);
  return program;
}
