// This all-reduce is for nodes of GPUs. It sums inside each node over memory channels, exchanges the sums
// between nodes over port channels, then gathers inside each node.
//
// GPU g of every node owns part g of the message. In one operation that rounds once, it sums the part over
// its node, its own addend first and then its neighbours' from g+1 on. It sends the sum to GPU g of all other
// nodes. Each of these adds the nodes' sums in the order of the nodes, rounding once, so they compute the
// same bits from the same values. Then each writes the result to its neighbours.
//
// Inside a node, only its owner accesses part g of any GPU, between two barriers. After the first, the node's
// inputs are complete and outputs may be written. Its signals are relaxed, because nothing of this launch has
// to be visible yet. After the second, the output is complete and nobody reads the input any more. Between
// nodes, every sender has its own slot in the receiver's scratch. A receiver reads its slots until its launch
// ends. So at the beginning of the next launch it signals that they are free, and a sender waits for that.
// The signal travels while the nodes sum. Port channels read scratch of the sender, so it flushes before it
// returns, and its next launch may overwrite the scratch.
//
// Cost: two barriers inside the node and one one-way latency between nodes; each GPU moves 2 (g - 1) / g
// messages inside its node of g GPUs, and sends (nodes - 1) / g messages to other nodes.

#include <chorale/dsl.hpp>
#include <stdexcept>

using namespace chorale::dsl;

CHORALE_PROGRAM(allreduce_two_level, Parameters& with) {
  with.summary("All-reduce for nodes of GPUs: sum in the node, exchange between nodes, gather.");
  const int ranks = with("ranks", 8, "number of GPUs", {.min = 1, .max = 1024});
  const bool inplace = with("inplace", false, "the sum replaces the input");
  const int gpus = with("gpus_per_node", ranks % 2 == 0 ? ranks / 2 : ranks, "GPUs of a node", {.min = 1});
  if (gpus < 1 || ranks % gpus != 0) throw std::invalid_argument("gpus_per_node must divide ranks");
  const int nodes = ranks / gpus;
  Program program({.name = "allreduce_two_level",
                   .collective = AllReduce{.ranks = ranks, .chunk_factor = 1, .inplace = inplace},
                   .instances = with("instances", 1, "thread blocks that split every part", {.min = 1})});
  const auto input = [&](int rank) { return program.rank(rank).get_input_buffer(); };
  const auto output = [&](int rank) {
    return inplace ? input(rank) : program.rank(rank).get_output_buffer();
  };
  std::vector<Buffer> sums;  // by rank: its part summed over a node, by node
  for (int rank = 0; rank < ranks; ++rank) sums.push_back({program, rank, nodes * nodes});
  const auto sum_of = [&](int rank, int node) { return sums[rank].slice(node * nodes, (node + 1) * nodes); };

  for (int rank = 0; rank < ranks; ++rank) {
    const int node = rank / gpus, gpu = rank % gpus;
    const auto part = [&](const BaseBuffer& buffer) { return buffer.slice(gpu * nodes, (gpu + 1) * nodes); };
    Rank me(program, rank);
    std::vector<MemoryChannel> neighbours;
    for (int i = 1; i < gpus; ++i) neighbours.push_back({program, node * gpus + (gpu + i) % gpus, rank});
    std::vector<PortChannel> partners;
    for (int i = 1; i < nodes; ++i) partners.push_back({program, (node + i) % nodes * gpus + gpu, rank});
    const auto barrier = [&](bool relaxed) {
      for (MemoryChannel& neighbour : neighbours) neighbour.signal(0, SyncType::both, relaxed);
      for (MemoryChannel& neighbour : neighbours) neighbour.wait(0, SyncType::both, relaxed);
    };

    const Chunk mine = sum_of(rank, node), result = part(output(rank));
    for (PortChannel& partner : partners) partner.signal(0);  // my slots are free
    if (gpus == 1) me.copy(mine, part(input(rank)), 0);
    barrier(/*relaxed=*/true);
    for (MemoryChannel& neighbour : neighbours) {
      const bool first = &neighbour == &neighbours.front();
      neighbour.reduce(first ? part(input(rank)) : mine, {part(input(neighbour.dst_rank()))}, 0, mine);
    }

    for (PortChannel& partner : partners) partner.wait(0);
    for (PortChannel& partner : partners) partner.put_with_signal(sum_of(partner.dst_rank(), node), mine, 0);
    for (PortChannel& partner : partners) partner.wait(0);
    std::vector<Chunk> others;
    for (int from = 1; from < nodes; ++from) others.push_back(sum_of(rank, from));
    if (nodes == 1) {
      me.copy(result, mine, 0);
    } else {
      me.reduce(sum_of(rank, 0), others, 0, result);
    }

    for (MemoryChannel& neighbour : neighbours) neighbour.put(part(output(neighbour.dst_rank())), result, 0);
    for (PortChannel& partner : partners) partner.flush(0);
    barrier(/*relaxed=*/false);
  }
  return program;
}
