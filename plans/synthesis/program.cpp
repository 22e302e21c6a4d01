#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "stage_writer.hpp"

namespace chorale::synthesis {
namespace {

using namespace chorale::dsl;

Collective collective_of(const Design& design, int64_t ranks) {
  const int64_t chunks = design.chunks * design.lanes;
  if (design.collective == AllGather::word) return AllGather{.ranks = ranks, .chunk_factor = chunks};
  if (design.collective == AllReduce::word) return AllReduce{.ranks = ranks, .chunk_factor = chunks};
  if (design.collective == ReduceScatter::word) return ReduceScatter{.ranks = ranks, .chunk_factor = chunks};
  if (design.collective == AllToAll::word) return AllToAll{.ranks = ranks, .chunk_factor = chunks};
  if (design.collective == Broadcast::word)
    return Broadcast{.ranks = ranks, .root = int64_t(design.root), .chunk_factor = chunks};
  return Reduce{.ranks = ranks, .root = int64_t(design.root), .chunk_factor = chunks};
}

class Writer {
 public:
  Writer(const std::string& name, const Network& network, const Design& design)
      : network_(network),
        design_(design),
        program_({.name = name, .collective = collective_of(design, network.ranks)}),
        places_(program_, network, design),
        resources_(network.ranks, design.lanes) {}

  Program written() {
    if (design_.up.used()) up_.emplace(program_, network_, design_.up, Way::up, design_, resources_);
    if (design_.down.used()) down_.emplace(program_, network_, design_.down, Way::down, design_, resources_);
    for (uint32_t rank = 0; rank < network_.ranks; ++rank)
      if (up_ && !design_.up.order.of_root[rank].empty()) up_->make_end(rank);
    if (down_) {
      const std::vector<bool> ends = have_ends();
      for (uint32_t rank = 0; rank < network_.ranks; ++rank)
        if (ends[rank]) down_->make_end(rank);
    }
    if (up_) number_slots(design_.up, slots_up_);
    if (!design_.ends.empty()) number_slots(design_.down, slots_down_);
    resources_.make_scratch(program_);
    if (up_) up_->begin();
    if (down_) down_->begin();
    for (uint32_t rank = 0; rank < network_.ranks; ++rank) expect_sums(rank);
    if (up_) {
      for (const Send& send : up_->sends()) send_sum(send);
      for (uint32_t rank = 0; rank < network_.ranks; ++rank) keep_sums(rank);
      up_->end();
    }
    if (down_) {
      for (const Send& send : down_->sends()) send_on(send);
      std::vector<std::vector<uint32_t>> incoming(network_.ranks);  // connections
      for (uint32_t one = 0; one < network_.connections.size(); ++one)
        incoming[network_.connections[one].to].push_back(one);
      for (uint32_t rank = 0; rank < network_.ranks; ++rank) finish(rank, incoming);
      down_->end();
    }
    return std::move(program_);
  }

 private:
  using Slots = std::map<std::pair<uint32_t, uint32_t>, int64_t>;  // by connection and piece

  /// Returns by rank whether pieces end there, or it has a part of its own to copy.
  std::vector<bool> have_ends() const {
    std::vector<bool> ends;
    for (uint32_t rank = 0; rank < network_.ranks; ++rank) ends.push_back(places_.has_own(rank));
    for (uint32_t one = 0; one < network_.connections.size(); ++one) {
      const uint32_t to = network_.connections[one].to;
      for (const uint32_t piece : design_.down.order.of_connection[one])
        if (down_->consumers(piece, to).front() == no_connection) ends[to] = true;
    }
    return ends;
  }

  /// Gives each piece that passes a rank a slot there.
  void number_slots(const Stage& stage, Slots& slots) {
    for (uint32_t one = 0; one < network_.connections.size(); ++one) {
      const uint32_t to = network_.connections[one].to;
      for (const uint32_t piece : stage.order.of_connection[one]) {
        const bool ends = !design_.ends.empty() && design_.ends[stage.pieces[piece].tree] == to;
        if (!ends) slots[{one, piece}] = resources_.slot(to);
      }
    }
  }

  /// Makes the semaphores by which the thread blocks that add up tell those that send the sums.
  void expect_sums(uint32_t rank) {
    sums_.emplace_back(program_, rank);
    if (!up_ || !down_) return;
    for (const uint32_t piece : design_.down.order.of_root[rank])
      for (const uint32_t consumer : down_->consumers(piece, rank))
        for (int64_t lane = 0; lane < design_.lanes; ++lane) sums_.back().expect(consumer, lane);
  }

  /// Adds up what arrives of a piece and the rank's own input, and sends the sum towards the root.
  void send_sum(const Send& send) {
    const Stage& stage = design_.up;
    const auto [time, turn, one, piece] = send;
    const uint32_t from = network_.connections[one].from, to = network_.connections[one].to;
    const std::vector<uint32_t> arriving = up_->arriving(piece, from);
    if (!arriving.empty()) {
      for (const Worker& worker : up_->workers(from, one)) {
        const std::vector<Chunk> others = arrived(piece, from, one, worker);
        program_.rank(from).reduce(places_.input(stage, piece, from, worker.parts), others, worker.block,
                                   others.front());
      }
      if (network_.connections[one].port) tell_port(from, one);
    }
    for (const Worker& sender : up_->senders(one)) {
      const Chunk source =
          arriving.empty() ? places_.input(stage, piece, from, sender.parts)
                           : resources_.scratch(from, slots_up_.at({arriving.front(), piece}), sender.parts);
      up_->send(one, piece, sender, resources_.scratch(to, slots_up_.at({one, piece}), sender.parts), source);
    }
  }

  /// Lets the sender of a port wait for those that add up.
  void tell_port(uint32_t rank, uint32_t one) {
    Deliveries& added = added_.try_emplace(one, program_, rank).first->second;
    for (const Worker& adder : up_->workers(rank, one)) {
      added.expect(one, adder.parts.first);
      added.tell(one, adder.parts.first, adder.block);
    }
    up_->await_made(added, one, up_->senders(one).front());
  }

  /// Adds up the pieces that end at a rank.
  void keep_sums(uint32_t rank) {
    const std::vector<uint32_t>& own = design_.up.order.of_root[rank];
    for (size_t at = 0; at < own.size(); ++at) {
      for (const Worker& worker : up_->workers(rank, no_connection)) {
        const std::vector<Chunk> others = arrived(own[at], rank, no_connection, worker);
        program_.rank(rank).reduce(places_.input(design_.up, own[at], rank, worker.parts), others,
                                   worker.block, places_.output(design_.up, own[at], rank, worker.parts));
        if (!down_) continue;
        for (const uint32_t consumer : down_->consumers(design_.down.order.of_root[rank][at], rank))
          sums_[rank].tell(consumer, worker.parts.first, worker.block);
      }
    }
  }

  /// Waits for what arrives of a piece, and returns where it is.
  std::vector<Chunk> arrived(uint32_t piece, uint32_t rank, uint32_t consumer, const Worker& worker) {
    std::vector<Chunk> chunks;
    for (const uint32_t one : up_->arriving(piece, rank)) {
      up_->await(one, consumer, worker);
      chunks.push_back(resources_.scratch(rank, slots_up_.at({one, piece}), worker.parts));
    }
    return chunks;
  }

  /// Sends a piece further away from its root.
  void send_on(const Send& send) {
    const Stage& stage = design_.down;
    const auto [time, turn, one, piece] = send;
    const uint32_t from = network_.connections[one].from, to = network_.connections[one].to;
    const std::vector<uint32_t> arriving = down_->arriving(piece, from);
    for (const Worker& sender : down_->senders(one)) {
      if (!arriving.empty()) {
        down_->await(arriving.front(), one, sender);
      } else if (up_) {
        down_->await_made(sums_[from], one, sender);
      }
      const Chunk source = !arriving.empty() ? place_after(arriving.front(), piece, from, sender.parts)
                           : up_             ? places_.output(stage, piece, from, sender.parts)
                                             : places_.input(stage, piece, from, sender.parts);
      down_->send(one, piece, sender, place_after(one, piece, to, sender.parts), source);
    }
  }

  Chunk place_after(uint32_t one, uint32_t piece, uint32_t rank, Parts parts) const {
    const auto slot = slots_down_.find({one, piece});
    return slot == slots_down_.end() ? places_.output(design_.down, piece, rank, parts)
                                     : resources_.scratch(rank, slot->second, parts);
  }

  /// Copies a rank's own part, and waits for the pieces that end there.
  void finish(uint32_t rank, const std::vector<std::vector<uint32_t>>& incoming) {
    for (const Worker& worker : down_->workers(rank, no_connection)) {
      for (const auto& [to, from] : places_.own(rank, worker.parts.first))
        program_.rank(rank).copy(to, from, worker.block);
      for (const uint32_t one : incoming[rank]) {
        for (const uint32_t piece : design_.down.order.of_connection[one])
          if (down_->consumers(piece, rank).front() == no_connection)
            down_->await(one, no_connection, worker);
      }
    }
  }

  const Network& network_;
  const Design& design_;
  Program program_;
  Places places_;
  Resources resources_;
  std::optional<StageWriter> up_, down_;
  Slots slots_up_, slots_down_;
  std::vector<Deliveries> sums_;          // by rank
  std::map<uint32_t, Deliveries> added_;  // by connection over a port
};

}  // namespace

dsl::Program program_of(const std::string& name, const Network& network, const Design& design) {
  return Writer(name, network, design).written();
}

}  // namespace chorale::synthesis
