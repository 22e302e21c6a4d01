#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "chorale/dsl.hpp"
#include "design.hpp"

namespace chorale::synthesis {
namespace {

using namespace chorale::dsl;

/// Holds both ends of a channel. `there` is run by the sender of data.
template <class Channel>
struct Ends {
  Channel there, back;
  Ends(Program& program, const Connection& one)
      : there(Channel(program, one.to, one.from)), back(Channel(program, one.from, one.to)) {}
};

Collective collective_of(const Design& design, int64_t ranks) {
  const int64_t chunks = design.chunks;
  if (design.collective == AllGather::word) return AllGather{.ranks = ranks, .chunk_factor = chunks};
  if (design.collective == AllReduce::word) return AllReduce{.ranks = ranks, .chunk_factor = chunks};
  if (design.collective == ReduceScatter::word) return ReduceScatter{.ranks = ranks, .chunk_factor = chunks};
  if (design.collective == AllToAll::word) return AllToAll{.ranks = ranks, .chunk_factor = chunks};
  if (design.collective == Broadcast::word)
    return Broadcast{.ranks = ranks, .root = int64_t(design.root), .chunk_factor = chunks};
  return Reduce{.ranks = ranks, .root = int64_t(design.root), .chunk_factor = chunks};
}

/// Says where the chunks of a collective are in the buffers.
class Places {
 public:
  Places(Program& program, const Network& network, const Design& design) : design_(design) {
    for (uint32_t rank = 0; rank < network.ranks; ++rank) {
      inputs_.push_back(program.rank(rank).get_input_buffer());
      outputs_.push_back(program.rank(rank).get_output_buffer());
    }
    // The parts of an all-reduce are as long as their roots have chunks.
    begins_.resize(network.ranks, 0);
    const Stage& stage = design.up.used() ? design.up : design.down;
    std::vector<int64_t> own(network.ranks, 0);
    for (const Tree& tree : stage.trees) own[tree.root] += tree.chunks;
    for (uint32_t rank = 1; rank < network.ranks; ++rank) begins_[rank] = begins_[rank - 1] + own[rank - 1];
  }

  /// Returns what `rank` contributes to a piece.
  Chunk input(const Stage& stage, uint32_t piece, uint32_t rank) const {
    return inputs_[rank][index(stage, piece, design_.collective != AllGather::word, true)];
  }

  /// Returns where the result of a piece is on `rank`.
  Chunk output(const Stage& stage, uint32_t piece, uint32_t rank) const {
    return outputs_[rank][index(stage, piece, design_.collective != ReduceScatter::word, false)];
  }

  /// Returns where a rank copies chunks of its own input, and from where. A reduction has none.
  std::vector<std::pair<Chunk, Chunk>> own(uint32_t rank) const {
    std::vector<std::pair<Chunk, Chunk>> copies;
    if (design_.up.used() || (design_.collective == Broadcast::word && rank != design_.root)) return copies;
    const int64_t part = rank * design_.chunks;
    for (int64_t chunk = 0; chunk < design_.chunks; ++chunk) {
      copies.emplace_back(outputs_[rank][chunk + (design_.collective == Broadcast::word ? 0 : part)],
                          inputs_[rank][chunk + (design_.collective == AllToAll::word ? part : 0)]);
    }
    return copies;
  }

 private:
  int64_t index(const Stage& stage, uint32_t piece, bool parts, bool input) const {
    const uint32_t tree = stage.pieces[piece].tree, root = stage.trees[tree].root;
    const int64_t chunk = stage.pieces[piece].chunk;
    if (design_.collective == AllToAll::word)
      return (input ? design_.ends[tree].front() : root) * design_.chunks + chunk;
    if (design_.collective == Broadcast::word || design_.collective == Reduce::word) return chunk;
    return parts ? begins_[root] + chunk : chunk;
  }

  const Design& design_;
  std::vector<BaseBuffer> inputs_, outputs_;
  std::vector<int64_t> begins_;
};

/// Numbers thread blocks and scratch of each rank.
class Resources {
 public:
  explicit Resources(uint32_t ranks) : blocks_(ranks, 0), slots_(ranks, 0) {}
  int64_t block(uint32_t rank) { return blocks_[rank]++; }
  int64_t slot(uint32_t rank) { return slots_[rank]++; }

  void make_scratch(Program& program) {
    for (uint32_t rank = 0; rank < slots_.size(); ++rank) {
      scratch_.push_back(slots_[rank] ? std::optional<Buffer>(Buffer(program, rank, slots_[rank]))
                                      : std::nullopt);
    }
  }
  Chunk scratch(uint32_t rank, int64_t slot) const { return (*scratch_[rank])[slot]; }

 private:
  std::vector<int64_t> blocks_, slots_;
  std::vector<std::optional<Buffer>> scratch_;
};

/// Tells thread blocks of a rank that pieces have arrived, or that the rank has made them.
class Deliveries {
 public:
  Deliveries(Program& program, uint32_t rank) : program_(program), rank_(rank) {}

  void expect(uint32_t consumer) {
    if (!semaphores_.contains(consumer)) semaphores_.emplace(consumer, Semaphore(program_, rank_, 0));
  }
  void tell(uint32_t consumer, int64_t block) const { semaphores_.at(consumer).release(block); }
  void await(uint32_t consumer, int64_t block) const { semaphores_.at(consumer).acquire(block); }

 private:
  Program& program_;
  uint32_t rank_;
  std::map<uint32_t, Semaphore> semaphores_;
};

/// Sends a piece over a connection.
struct Send {
  double time;
  uint32_t turn;  ///< at the same time, lower numbers are first
  uint32_t one, piece;
  auto operator<=>(const Send&) const = default;
};

/// Writes the operations of one stage. A connection has one thread block at its sender, which sends its pieces
/// in order, or one thread block sends all pieces of a rank. All ports of a rank share one, because its proxy
/// sends one piece after the other. Each thread block at the receiver that uses a piece has a channel of its own, because it counts the signals. Over a
/// port, one thread block receives, and semaphores tell the others.
class StageWriter {
 public:
  StageWriter(Program& program, const Network& network, const Stage& stage, bool in_turns,
              Resources& resources)
      : program_(program), network_(network), stage_(stage), resources_(resources) {
    for (const Tree& tree : stage.trees) {
      arriving_.push_back(std::vector<std::vector<uint32_t>>(network.ranks));
      leaving_.push_back(std::vector<std::vector<uint32_t>>(network.ranks));
      for (const uint32_t one : tree.over) {
        if (one == no_connection) continue;
        arriving_.back()[network.connections[one].to].push_back(one);
        leaving_.back()[network.connections[one].from].push_back(one);
      }
    }
    ends_at_.resize(network.ranks, -1);
    senders_.resize(network.connections.size(), -1);
    receivers_.resize(network.connections.size(), -1);
    std::map<std::pair<uint32_t, int64_t>, std::vector<uint32_t>> by_block;  // by rank and thread block
    std::map<std::pair<uint32_t, bool>, int64_t> shared;  // by rank, and whether it sends over ports
    for (uint32_t one = 0; one < network.connections.size(); ++one) {
      if (stage.order.of_connection[one].empty()) continue;
      const Connection& connection = network.connections[one];
      const std::pair key{connection.from, connection.port};
      const bool own = !connection.port && !in_turns;
      if (!own && !shared.contains(key)) shared[key] = resources.block(connection.from);
      senders_[one] = own ? resources.block(connection.from) : shared.at(key);
      if (connection.port) receivers_[one] = resources.block(connection.to);
      by_block[{connection.from, senders_[one]}].push_back(one);
    }
    // Each sender begins with another receiver.
    for (const auto& [block, list] : by_block) {
      for (size_t place = 0; place < list.size(); ++place) {
        const uint32_t one = list[place];
        const size_t turn = (place + list.size() - block.first % list.size()) % list.size();
        for (size_t at = 0; at < stage.order.of_connection[one].size(); ++at)
          sends_.push_back({stage.order.times[one][at], uint32_t(turn), one, stage.order.of_connection[one][at]});
      }
    }
    std::sort(sends_.begin(), sends_.end());
  }

  /// Returns all that is sent, in the order of time.
  const std::vector<Send>& sends() const { return sends_; }

  /// Makes the thread block of a rank where pieces end.
  void make_end(uint32_t rank) {
    if (ends_at_[rank] < 0) ends_at_[rank] = resources_.block(rank);
  }
  int64_t end_block(uint32_t rank) const { return ends_at_[rank]; }
  int64_t sender(uint32_t one) const { return senders_[one]; }

  /// Makes the channels, and lets each receiver say that its memory may be written.
  void begin() {
    for (uint32_t one = 0; one < network_.connections.size(); ++one) {
      const std::vector<uint32_t>& order = stage_.order.of_connection[one];
      if (order.empty()) continue;
      const Connection& connection = network_.connections[one];
      if (connection.port) {
        ports_.emplace(one, Ends<PortChannel>(program_, connection));
        Deliveries& deliveries = deliveries_.emplace(one, Deliveries(program_, connection.to)).first->second;
        for (const uint32_t piece : order)
          for (const uint32_t consumer : consumers(piece, connection.to)) deliveries.expect(consumer);
        ports_.at(one).back.signal(receivers_[one]);
        ports_.at(one).there.wait(senders_[one]);
        continue;
      }
      for (const uint32_t piece : order) {
        for (const uint32_t consumer : consumers(piece, connection.to))
          if (!channels_.contains({one, consumer}))
            channels_.emplace(std::pair{one, consumer}, Ends<MemoryChannel>(program_, connection));
      }
      const auto& [key, first] = *channels_.lower_bound({one, 0});
      first.back.signal(block_of(connection.to, key.second), SyncType::both, /*relaxed=*/true);
      first.there.wait(senders_[one], SyncType::both, /*relaxed=*/true);
    }
  }

  /// Sends a piece from a thread block at the start of a connection, and tells those who use it.
  void send(uint32_t one, uint32_t piece, Chunk to, Chunk from) {
    if (network_.connections[one].port) {
      ports_.at(one).there.put_with_signal(to, from, senders_[one]);
      return;
    }
    const auto first = channels_.lower_bound({one, 0});
    first->second.there.put(to, from, senders_[one]);
    for (const uint32_t consumer : consumers(piece, network_.connections[one].to))
      channels_.at({one, consumer}).there.signal(senders_[one]);
  }

  /// Lets the receivers of ports pass on what arrives, and the senders wait for their sources.
  void end() {
    for (auto& [one, port] : ports_) {
      const Connection& connection = network_.connections[one];
      for (const uint32_t piece : stage_.order.of_connection[one]) {
        port.back.wait(receivers_[one]);
        for (const uint32_t consumer : consumers(piece, connection.to))
          deliveries_.at(one).tell(consumer, receivers_[one]);
      }
      port.there.flush(senders_[one]);
    }
  }

  /// Waits for a piece over a connection.
  /// \param consumer  the connection that carries it on, or no_connection where it ends
  void await(uint32_t one, uint32_t consumer) {
    const int64_t block = block_of(network_.connections[one].to, consumer);
    if (network_.connections[one].port) {
      deliveries_.at(one).await(consumer, block);
    } else {
      channels_.at({one, consumer}).back.wait(block);
    }
  }

  const std::vector<uint32_t>& arriving(uint32_t piece, uint32_t rank) const {
    return arriving_[stage_.pieces[piece].tree][rank];
  }
  /// Returns the connections that carry a piece on, or no_connection where it ends.
  std::vector<uint32_t> consumers(uint32_t piece, uint32_t rank) const {
    const std::vector<uint32_t>& on = leaving_[stage_.pieces[piece].tree][rank];
    return on.empty() ? std::vector<uint32_t>{no_connection} : on;
  }

 private:
  int64_t block_of(uint32_t rank, uint32_t consumer) const {
    return consumer == no_connection ? ends_at_[rank] : senders_[consumer];
  }

  Program& program_;
  const Network& network_;
  const Stage& stage_;
  Resources& resources_;
  std::vector<std::vector<std::vector<uint32_t>>> arriving_, leaving_;  // by tree and rank: connections
  std::vector<int64_t> ends_at_;                                        // by rank: thread block
  std::vector<int64_t> senders_, receivers_;                            // by connection: thread block
  std::vector<Send> sends_;
  std::map<std::pair<uint32_t, uint32_t>, Ends<MemoryChannel>> channels_;  // by connection and consumer
  std::map<uint32_t, Ends<PortChannel>> ports_;                            // by connection
  std::map<uint32_t, Deliveries> deliveries_;                              // by connection over a port
};

class Writer {
 public:
  Writer(const std::string& name, const Network& network, const Design& design)
      : network_(network),
        design_(design),
        program_({.name = name,
                  .collective = collective_of(design, network.ranks),
                  .instances = design.instances}),
        places_(program_, network, design),
        resources_(network.ranks) {}

  Program written() {
    std::optional<StageWriter> up, down;
    if (design_.up.used()) up.emplace(program_, network_, design_.up, design_.in_turns, resources_);
    if (design_.down.used()) down.emplace(program_, network_, design_.down, design_.in_turns, resources_);
    for (uint32_t rank = 0; rank < network_.ranks; ++rank) {
      if (up && !design_.up.order.of_root[rank].empty()) up->make_end(rank);
      if (down && ends(*down, rank)) down->make_end(rank);
    }
    if (up) number_slots(design_.up, slots_up_);
    if (down && design_.collective == AllToAll::word) number_slots(design_.down, slots_down_);
    resources_.make_scratch(program_);
    if (up) up->begin();
    if (down) down->begin();
    if (up && down) join(*down);
    if (up) reduce(*up, down ? &*down : nullptr);
    if (down) spread(*down);
    copy_own(down ? &*down : nullptr);
    if (up) up->end();
    if (down) down->end();
    return std::move(program_);
  }

 private:
  using Slots = std::map<std::pair<uint32_t, uint32_t>, int64_t>;  // by connection and piece

  /// Returns true if a rank has pieces that end there, or a part of its own to copy.
  bool ends(const StageWriter& down, uint32_t rank) const {
    if (!places_.own(rank).empty()) return true;
    for (uint32_t piece = 0; piece < design_.down.pieces.size(); ++piece) {
      if (!down.arriving(piece, rank).empty() && down.consumers(piece, rank).front() == no_connection)
        return true;
    }
    return false;
  }

  /// Gives each piece that passes a rank a chunk of scratch there.
  void number_slots(const Stage& stage, Slots& slots) {
    for (uint32_t one = 0; one < network_.connections.size(); ++one) {
      const uint32_t to = network_.connections[one].to;
      for (const uint32_t piece : stage.order.of_connection[one]) {
        const uint32_t tree = stage.pieces[piece].tree;
        if (!design_.ends.empty() && design_.ends[tree].front() == to) continue;
        slots[{one, piece}] = resources_.slot(to);
      }
    }
  }

  /// Lets connections that carry reduced pieces wait for the thread blocks that reduce.
  void join(const StageWriter& down) {
    for (uint32_t rank = 0; rank < network_.ranks; ++rank) {
      reduced_.push_back(Deliveries(program_, rank));
      for (const uint32_t piece : design_.down.order.of_root[rank])
        for (const uint32_t consumer : down.consumers(piece, rank)) reduced_.back().expect(consumer);
    }
  }

  /// Writes the reduction: each rank adds its input to what arrives, and sends the sum on.
  void reduce(StageWriter& up, const StageWriter* down) {
    const Stage& stage = design_.up;
    for (const auto& [time, turn, one, piece] : up.sends()) {
      const auto [from, to] = std::pair{network_.connections[one].from, network_.connections[one].to};
      const Chunk target = resources_.scratch(to, slots_up_.at({one, piece}));
      const std::vector<Chunk> others = arrived(up, piece, from, one);
      if (others.empty()) {
        up.send(one, piece, target, places_.input(stage, piece, from));
        continue;
      }
      program_.rank(from).reduce(places_.input(stage, piece, from), others, up.sender(one), others.front());
      up.send(one, piece, target, others.front());
    }
    for (uint32_t rank = 0; rank < network_.ranks; ++rank) {
      const std::vector<uint32_t>& own = stage.order.of_root[rank];
      const int64_t block = up.end_block(rank);
      for (size_t at = 0; at < own.size(); ++at) {
        const uint32_t piece = own[at];
        const std::vector<Chunk> others = arrived(up, piece, rank, no_connection);
        program_.rank(rank).reduce(places_.input(stage, piece, rank), others, block,
                                   places_.output(stage, piece, rank));
        if (!down) continue;
        for (const uint32_t consumer : down->consumers(design_.down.order.of_root[rank][at], rank))
          reduced_[rank].tell(consumer, block);
      }
    }
  }

  /// Waits for what arrives of a piece, and returns where it is.
  std::vector<Chunk> arrived(StageWriter& up, uint32_t piece, uint32_t rank, uint32_t consumer) {
    std::vector<Chunk> chunks;
    for (const uint32_t one : up.arriving(piece, rank)) {
      up.await(one, consumer);
      chunks.push_back(resources_.scratch(rank, slots_up_.at({one, piece})));
    }
    return chunks;
  }

  /// Writes how pieces are sent on, and where they end.
  void spread(StageWriter& down) {
    const Stage& stage = design_.down;
    for (const auto& [time, turn, one, piece] : down.sends()) {
      const auto [from, to] = std::pair{network_.connections[one].from, network_.connections[one].to};
      const uint32_t root = stage.trees[stage.pieces[piece].tree].root;
      std::optional<Chunk> source;
      if (from != root) {
        const uint32_t before = down.arriving(piece, from).front();
        down.await(before, one);
        source = place_after(stage, before, piece, from);
      } else if (design_.up.used()) {
        reduced_[from].await(one, down.sender(one));
        source = places_.output(stage, piece, from);
      } else {
        source = places_.input(stage, piece, from);
      }
      down.send(one, piece, place_after(stage, one, piece, to), *source);
    }
  }

  Chunk place_after(const Stage& stage, uint32_t one, uint32_t piece, uint32_t rank) const {
    const auto slot = slots_down_.find({one, piece});
    return slot == slots_down_.end() ? places_.output(stage, piece, rank)
                                     : resources_.scratch(rank, slot->second);
  }

  /// Writes what each rank does with its own part, and waits for the pieces that end there.
  void copy_own(StageWriter* down) {
    if (!down) return;
    for (uint32_t rank = 0; rank < network_.ranks; ++rank) {
      for (const auto& [to, from] : places_.own(rank))
        program_.rank(rank).copy(to, from, down->end_block(rank));
      for (uint32_t one = 0; one < network_.connections.size(); ++one) {
        if (network_.connections[one].to != rank) continue;
        for (const uint32_t piece : design_.down.order.of_connection[one])
          if (down->consumers(piece, rank).front() == no_connection) down->await(one, no_connection);
      }
    }
  }

  const Network& network_;
  const Design& design_;
  Program program_;
  Places places_;
  Resources resources_;
  Slots slots_up_, slots_down_;
  std::vector<Deliveries> reduced_;  // by rank
};

}  // namespace

dsl::Program program_of(const std::string& name, const Network& network, const Design& design) {
  return Writer(name, network, design).written();
}

}  // namespace chorale::synthesis
