#include "stage_writer.hpp"

#include <algorithm>

namespace chorale::synthesis {

using namespace dsl;

void Deliveries::expect(uint32_t consumer, int64_t number) {
  const std::pair key{consumer, number};
  if (!semaphores_.contains(key)) semaphores_.emplace(key, Semaphore(program_, rank_, 0));
}
void Deliveries::tell(uint32_t consumer, int64_t number, int64_t block) const {
  semaphores_.at({consumer, number}).release(block);
}
void Deliveries::await(uint32_t consumer, int64_t number, int64_t block) const {
  semaphores_.at({consumer, number}).acquire(block);
}

StageWriter::StageWriter(Program& program, const Network& network, const Stage& stage, Way way,
                         const Design& design, Resources& resources)
    : program_(program),
      network_(network),
      stage_(stage),
      lanes_(size_t(design.lanes)),
      resources_(resources),
      ends_at_(network.ranks),
      senders_(network.connections.size()),
      adders_(network.connections.size()),
      receivers_(network.connections.size(), -1) {
  for (const Tree& tree : stage.trees) {
    arriving_.emplace_back(network, tree, false);
    leaving_.emplace_back(network, tree, true);
  }
  std::map<std::pair<uint32_t, bool>, std::vector<Worker>> shared;         // by rank, and whether over ports
  std::map<std::pair<uint32_t, int64_t>, std::vector<uint32_t>> by_block;  // by rank and thread block
  for (uint32_t one = 0; one < network.connections.size(); ++one) {
    if (stage.order.of_connection[one].empty()) continue;
    const uint32_t from = network.connections[one].from, to = network.connections[one].to;
    const bool port = network.connections[one].port;
    std::vector<Worker>& of_rank = shared[{from, port}];
    if (port) {
      if (of_rank.empty()) of_rank = {{resources.blocks(from, 1), {0, design.lanes}}};
      if (way == Way::up || !ends_there(one)) receivers_[one] = resources.blocks(to, 1);
      const std::vector<uint32_t>& order = stage.order.of_connection[one];
      const bool adds = std::any_of(order.begin(), order.end(),
                                    [&](uint32_t piece) { return !arriving(piece, from).empty(); });
      if (way == Way::up && adds) adders_[one] = lanes(from);
    } else if (of_rank.empty() || !design.in_turns) {
      of_rank = lanes(from);
    }
    senders_[one] = of_rank;
    by_block[{from, of_rank.front().block}].push_back(one);
  }
  // Each sender begins with another receiver.
  for (const auto& [block, list] : by_block) {
    for (size_t place = 0; place < list.size(); ++place) {
      const size_t turn = (place + list.size() - block.first % list.size()) % list.size();
      const std::vector<uint32_t>& order = stage.order.of_connection[list[place]];
      for (size_t at = 0; at < order.size(); ++at)
        sends_.push_back({stage.order.times[list[place]][at], uint32_t(turn), list[place], order[at]});
    }
  }
  std::sort(sends_.begin(), sends_.end());
}

std::vector<Worker> StageWriter::lanes(uint32_t rank) {
  const int64_t first = resources_.blocks(rank, int64_t(lanes_));
  std::vector<Worker> workers;
  for (int64_t lane = 0; lane < int64_t(lanes_); ++lane) workers.push_back({first + lane, {lane, 1}});
  return workers;
}

void StageWriter::make_end(uint32_t rank) {
  if (ends_at_[rank].empty()) ends_at_[rank] = lanes(rank);
}

const std::vector<Worker>& StageWriter::workers(uint32_t rank, uint32_t consumer) const {
  if (consumer == no_connection) return ends_at_[rank];
  return adders_[consumer].empty() ? senders_[consumer] : adders_[consumer];
}

std::vector<uint32_t> StageWriter::consumers(uint32_t piece, uint32_t rank) const {
  std::vector<uint32_t> on = leaving_[stage_.pieces[piece].tree].at(rank);
  if (on.empty()) on = {no_connection};
  return on;
}

bool StageWriter::ends_there(uint32_t one) const {
  const std::vector<uint32_t>& order = stage_.order.of_connection[one];
  return std::all_of(order.begin(), order.end(), [&](uint32_t piece) {
    return leaving_[stage_.pieces[piece].tree].at(network_.connections[one].to).empty();
  });
}

int64_t StageWriter::receiver(uint32_t one) const {
  return receivers_[one] >= 0 ? receivers_[one] : ends_at_[network_.connections[one].to].front().block;
}

void StageWriter::begin() {
  for (uint32_t one = 0; one < network_.connections.size(); ++one) {
    if (stage_.order.of_connection[one].empty()) continue;
    if (network_.connections[one].port) {
      begin_port(one);
    } else {
      begin_memory(one);
    }
  }
}

void StageWriter::begin_port(uint32_t one) {
  const Connection& connection = network_.connections[one];
  const Ends<PortChannel>& port = ports_.emplace(one, Ends<PortChannel>(program_, connection)).first->second;
  Deliveries& deliveries = deliveries_.emplace(one, Deliveries(program_, connection.to)).first->second;
  for (const uint32_t piece : stage_.order.of_connection[one]) {
    if (receivers_[one] < 0) break;
    for (const uint32_t consumer : consumers(piece, connection.to))
      for (const Worker& worker : workers(connection.to, consumer))
        deliveries.expect(consumer, worker.parts.first);
  }
  port.back.signal(receiver(one));
  port.there.wait(senders_[one].front().block);
}

void StageWriter::begin_memory(uint32_t one) {
  const Connection& connection = network_.connections[one];
  for (const Worker& sender : senders_[one]) {
    bool first = true;
    for (const uint32_t piece : stage_.order.of_connection[one]) {
      for (const uint32_t consumer : consumers(piece, connection.to)) {
        const std::tuple key{one, consumer, sender.parts.first};
        if (channels_.contains(key)) continue;
        const Ends<MemoryChannel>& made =
            channels_.emplace(key, Ends<MemoryChannel>(program_, connection)).first->second;
        if (!std::exchange(first, false)) continue;
        const size_t worker = one_for_all(connection.to, consumer) ? 0 : size_t(sender.parts.first);
        made.back.signal(workers(connection.to, consumer)[worker].block, SyncType::both, /*relaxed=*/true);
        made.there.wait(sender.block, SyncType::both, /*relaxed=*/true);
      }
    }
  }
}

void StageWriter::send(uint32_t one, uint32_t piece, const Worker& sender, Chunk to, Chunk from) {
  if (network_.connections[one].port) {
    ports_.at(one).there.put_with_signal(to, from, sender.block);
    return;
  }
  const std::vector<uint32_t> users = consumers(piece, network_.connections[one].to);
  channels_.at({one, users.front(), sender.parts.first}).there.put(to, from, sender.block);
  for (const uint32_t consumer : users)
    channels_.at({one, consumer, sender.parts.first}).there.signal(sender.block);
}

void StageWriter::end() {
  for (auto& [one, port] : ports_) {
    const uint32_t to = network_.connections[one].to;
    for (const uint32_t piece : stage_.order.of_connection[one]) {
      if (receivers_[one] < 0) break;
      port.back.wait(receivers_[one]);
      for (const uint32_t consumer : consumers(piece, to))
        for (const Worker& worker : workers(to, consumer))
          deliveries_.at(one).tell(consumer, worker.parts.first, receivers_[one]);
    }
    port.there.flush(senders_[one].front().block);
  }
}

void StageWriter::await(uint32_t one, uint32_t consumer, const Worker& worker) {
  if (network_.connections[one].port) {
    if (receivers_[one] >= 0) {
      deliveries_.at(one).await(consumer, worker.parts.first, worker.block);
    } else if (worker.parts.first == 0) {
      ports_.at(one).back.wait(worker.block);
    }
    return;
  }
  for (int64_t lane = 0; lane < worker.parts.count; ++lane)
    channels_.at({one, consumer, worker.parts.first + lane}).back.wait(worker.block);
}

void StageWriter::await_made(const Deliveries& made, uint32_t consumer, const Worker& worker) const {
  for (int64_t lane = 0; lane < worker.parts.count; ++lane)
    made.await(consumer, worker.parts.first + lane, worker.block);
}

}  // namespace chorale::synthesis
