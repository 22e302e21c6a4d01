/// \file
/// Runs plans on an abstract machine. Chunks hold the names of the inputs that were added, launches follow
/// each other without a barrier, and any agent that can take a step may be the next. The machine is less
/// careful than the executors: a rank's input and output return to the application at once when its launch
/// ends, and port channels read their sources as late as they may.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "chorale/plan.hpp"

namespace model {

using chorale::BufferKind;
using chorale::ChannelType;
using chorale::Op;
using chorale::Operand;
using chorale::Plan;
using chorale::Role;
using chorale::ThreadBlock;

/// Names the contents of a chunk: "(rank.chunk@launch)" for every input that was added to it.
using Value = std::string;

inline Value input_of(uint64_t rank, uint64_t chunk, int launch) {
  return "(" + std::to_string(rank) + "." + std::to_string(chunk) + "@" + std::to_string(launch) + ")";
}

/// Returns the parts of a value, whatever their order.
inline std::multiset<Value> parts_of(const Value& value) {
  std::multiset<Value> parts;
  for (size_t from = 0; from < value.size();) {
    const size_t end = std::min(value.find(')', from), value.size() - 1);
    parts.insert(value.substr(from, end + 1 - from));
    from = end + 1;
  }
  return parts;
}

class Machine {
 public:
  Machine(const Plan& plan, int launches, unsigned seed) : plan_(plan), launches_(launches), random_(seed) {
    for (const chorale::Gpu& gpu : plan.gpus) {
      State state;
      for (int kind = 0; kind < 3; ++kind) state.memory[kind].resize(gpu.chunks[kind]);
      for (auto& bank : state.packets) bank.resize(gpu.chunks[2], {-1, ""});
      state.at.resize(gpu.threadblocks.size());
      ranks_.push_back(std::move(state));
    }
    for (size_t rank = 0; rank < ranks_.size(); ++rank) begin(rank);
  }

  /// Runs all launches in a random order.
  /// \return the error; empty if there is none
  std::string run() {
    std::vector<double> speed(ranks_.size());
    for (long turn = 0; wrong_.empty(); ++turn) {
      if (turn % 500 == 0) {
        for (double& one : speed)
          one = std::pow(10.0, -double(random_() % 4));  // some ranks are slow for a while
      }
      std::vector<Agent> agents;
      std::vector<double> weights;
      for (size_t rank = 0; rank < ranks_.size(); ++rank) {
        for (size_t block = 0; ranks_[rank].launch < launches_ && block < ranks_[rank].at.size(); ++block) {
          agents.push_back({rank, uint32_t(block), false});
          weights.push_back(speed[rank]);
        }
      }
      for (const auto& [channel, transfers] : pushed_) {
        if (transfers.empty()) continue;
        agents.push_back({channel.first, channel.second, true});
        weights.push_back(0.1);
      }
      if (agents.empty()) return "";
      const size_t first = size_t(std::discrete_distribution<int>(weights.begin(), weights.end())(random_));
      size_t tried = 0;
      while (tried < agents.size() && !act(agents[(first + tried) % agents.size()])) ++tried;
      if (tried == agents.size()) return "deadlock";
    }
    return wrong_;
  }

 private:
  struct State {
    std::array<std::vector<Value>, 3> memory;
    std::array<std::vector<std::pair<int, Value>>, 2>
        packets;             ///< by bank: the launch that wrote it, and what
    std::vector<size_t> at;  ///< by block: its next operation
    int launch = 0;
  };
  /// Identifies chunks of a buffer of a rank.
  struct Place {
    size_t rank, kind;
    uint64_t index, size;
  };
  struct Transfer {
    std::vector<std::pair<Place, Place>> copies;  ///< from, to
    bool posts = false;
  };
  /// Represents a thread block, or, with `port`, the proxy of a port channel.
  struct Agent {
    size_t rank;
    uint32_t number;
    bool port;
  };

  void begin(size_t rank) {
    State& state = ranks_[rank];
    auto& input = state.memory[0];
    for (size_t chunk = 0; chunk < input.size(); ++chunk) input[chunk] = input_of(rank, chunk, state.launch);
    std::fill(state.memory[1].begin(), state.memory[1].end(), "unwritten");
    if (gathers_in_place())
      write(united({rank, 0, 0, input.size()}), std::vector<Value>(input.begin(), input.end()));
    std::fill(state.at.begin(), state.at.end(), 0);
  }

  void end(size_t rank) {
    State& state = ranks_[rank];
    const auto& output = state.memory[plan_.inplace && !gathers_in_place() ? 0 : 1];
    for (size_t chunk = 0; chunk < output.size(); ++chunk) {
      std::multiset<Value> wanted;
      const uint64_t root = plan_.extension.root;
      const uint64_t share = output.size() / ranks_.size();
      const auto& name = plan_.collective;
      if (name == "reduce" && rank != root) continue;
      for (size_t peer = 0; peer < ranks_.size(); ++peer) {
        if (name == "allreduce" || name == "reduce") wanted.insert(input_of(peer, chunk, state.launch));
        if (name == "reducescatter")
          wanted.insert(input_of(peer, rank * output.size() + chunk, state.launch));
      }
      if (name == "allgather") wanted = {input_of(chunk / share, chunk % share, state.launch)};
      if (name == "alltoall") wanted = {input_of(chunk / share, rank * share + chunk % share, state.launch)};
      if (name == "broadcast") wanted = {input_of(root, chunk, state.launch)};
      if (parts_of(output[chunk]) == wanted) continue;
      wrong_ = "launch " + std::to_string(state.launch) + ", rank " + std::to_string(rank) + ", chunk " +
               std::to_string(chunk) + " is " + output[chunk];
    }
    if (++state.launch < launches_) return begin(rank);
    for (int kind : {0, 1}) std::fill(state.memory[kind].begin(), state.memory[kind].end(), "freed");
  }

  bool act(const Agent& agent) {
    if (agent.port) {
      auto& transfers = pushed_[{agent.rank, agent.number}];
      if (transfers.empty()) return false;
      const Transfer transfer = transfers.front();
      transfers.pop_front();
      for (const auto& [from, to] : transfer.copies) write(to, read(from));
      if (transfer.posts) post(agent.rank, ChannelType::port, agent.number);
      return true;
    }
    State& state = ranks_[agent.rank];
    const ThreadBlock& block = plan_.gpus[agent.rank].threadblocks[agent.number];
    size_t& at = state.at[agent.number];
    if (at == block.ops.size() || !step(agent.rank, block, block.ops[at])) return false;
    ++at;
    bool ended = true;
    for (size_t other = 0; other < state.at.size(); ++other) {
      ended &= state.at[other] == plan_.gpus[agent.rank].threadblocks[other].ops.size();
    }
    if (ended) end(agent.rank);
    return true;
  }

  /// Does one operation, by the roles of the table. Returns false if it has to wait.
  bool step(size_t rank, const ThreadBlock& block, const Op& op) {
    const chorale::OpInfo& row = chorale::info(op.code);
    std::vector<uint32_t> channels;
    for (const uint32_t id : block.op_ids(op)) channels.push_back(block.channels_of(op.via)->ids[id]);

    if (row.has(Role::Await) || row.has(Role::AwaitRelaxed)) {
      for (const uint32_t channel : channels) {
        if (posts_[{rank, op.via, channel}] == 0) return false;
      }
      for (const uint32_t channel : channels) --posts_[{rank, op.via, channel}];
    }
    if (row.has(Role::Drain)) {
      for (const uint32_t channel : channels) {
        if (!pushed_[{rank, channel}].empty()) return false;
      }
    }
    const auto sources = block.sources(op), dests = block.dests(op);
    for (size_t at = 0; at < sources.size(); ++at) {
      if (role(row, false, at) == Role::PacketRead && !arrived(rank, sources[at])) return false;
    }
    if (op.via == ChannelType::port && (row.has(Role::Post) || row.has(Role::RemoteWrite))) {
      for (size_t at = 0; at < channels.size(); ++at) {
        Transfer transfer{{}, row.has(Role::Post)};
        if (!sources.empty()) {
          transfer.copies = {{place(rank, block, op, Role::Read, sources[at]),
                              place(rank, block, op, Role::RemoteWrite, dests[at])}};
        }
        pushed_[{rank, channels[at]}].push_back(std::move(transfer));
      }
      return true;
    }

    std::vector<std::vector<Value>> values;
    for (size_t at = 0; at < sources.size(); ++at) {
      const Role how = role(row, false, at);
      std::vector<Value> value = how == Role::PacketRead ? packets(rank, sources[at])
                                                         : read(place(rank, block, op, how, sources[at]));
      if (!row.has(Role::Reduce) || values.empty()) {
        values.push_back(std::move(value));
      } else {
        for (size_t chunk = 0; chunk < value.size(); ++chunk) values[0][chunk] += value[chunk];
      }
    }
    for (size_t at = 0; at < dests.size(); ++at) {
      const Role how = role(row, true, at);
      const std::vector<Value>& value = values[std::min(at, values.size() - 1)];
      const Place to = place(rank, block, op, how, dests[at]);
      if (!chorale::is_packet(how)) {
        write(to, value);
        continue;
      }
      const int launch = ranks_[rank].launch;
      auto& bank = ranks_[to.rank].packets[size_t(launch % 2)];
      for (uint64_t chunk = 0; chunk < to.size; ++chunk) bank[to.index + chunk] = {launch, value[chunk]};
    }
    if (row.has(Role::Post) || row.has(Role::PostRelaxed)) {
      for (const uint32_t channel : channels) post(rank, op.via, channel);
    }
    return true;
  }

  /// Returns the role of operand `at` of one side. The last row field is the one that may repeat.
  static Role role(const chorale::OpInfo& row, bool in_dst, size_t at) {
    Role found = Role::Read;
    for (const chorale::Field& field : row.fields) {
      if (!chorale::is_operand(field.role) || field.in_dst != in_dst) continue;
      found = field.role;
      if (field.many || at-- == 0) break;
    }
    return found;
  }

  Place place(size_t rank, const ThreadBlock& block, const Op& op, Role how, const Operand& operand) const {
    if (!chorale::is_remote(how)) return united({rank, operand.ref, operand.index, operand.size});
    const uint32_t id = block.remote_buffers_of(op.via)->ids[operand.ref];
    const chorale::RemoteBuffer& remote = plan_.gpus[rank].remote_buffers[id];
    return united({remote.rank, size_t(remote.buffer), operand.index, operand.size});
  }

  bool gathers_in_place() const { return plan_.inplace && plan_.collective == "allgather"; }

  /// Maps a rank's input to its part of the output.
  Place united(Place place) const {
    if (!gathers_in_place() || place.kind != size_t(BufferKind::input)) return place;
    place.kind = size_t(BufferKind::output);
    place.index += place.rank * ranks_[place.rank].memory[0].size();
    return place;
  }

  std::vector<Value> read(const Place& from) const {
    const auto first = ranks_[from.rank].memory[from.kind].begin() + std::ptrdiff_t(from.index);
    return {first, first + std::ptrdiff_t(from.size)};
  }
  void write(const Place& to, const std::vector<Value>& value) {
    std::copy(value.begin(), value.end(), ranks_[to.rank].memory[to.kind].begin() + std::ptrdiff_t(to.index));
  }

  bool arrived(size_t rank, const Operand& slots) const {
    const State& state = ranks_[rank];
    for (uint64_t chunk = slots.index; chunk < slots.index + slots.size; ++chunk) {
      // A later launch's packet has overwritten this one, which will never be seen.
      if (state.packets[size_t(state.launch % 2)][chunk].first != state.launch) return false;
    }
    return true;
  }
  std::vector<Value> packets(size_t rank, const Operand& slots) const {
    const State& state = ranks_[rank];
    std::vector<Value> value;
    for (uint64_t chunk = slots.index; chunk < slots.index + slots.size; ++chunk) {
      value.push_back(state.packets[size_t(state.launch % 2)][chunk].second);
    }
    return value;
  }

  /// Posts the other end of a channel: the k-th channel from A to B belongs to the k-th from B to A.
  void post(size_t rank, ChannelType type, uint32_t channel) {
    const size_t peer = size_t(plan_.gpus[rank].peer(type, channel));
    uint32_t before = 0;
    for (uint32_t other = 0; other < channel; ++other)
      before += plan_.gpus[rank].peer(type, other) == int64_t(peer);
    for (uint32_t other = 0;; ++other) {
      if (plan_.gpus[peer].peer(type, other) != int64_t(rank) || before-- != 0) continue;
      ++posts_[{peer, type, other}];
      return;
    }
  }

  const Plan& plan_;
  int launches_;
  std::mt19937 random_;
  std::vector<State> ranks_;
  std::map<std::tuple<size_t, ChannelType, uint32_t>, int> posts_;
  std::map<std::pair<size_t, uint32_t>, std::deque<Transfer>> pushed_;
  std::string wrong_;
};

}  // namespace model
