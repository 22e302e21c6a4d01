// This file makes the graph from a recorded launch. Transfers of a plan have one side, messages have two:
//   put                    a send, and a receive at the peer that waits for nothing
//   get                    a message that asks for the data, the send at the peer after it, the receive
//   signal after a put     nothing: the wait waits for the put's receive
//   any other signal       a message without data
// A wait also waits for all puts to its rank that come before the signal, whoever made them. Each thread
// block has a clock for that: by thread block, how many of its puts come before.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "chorale/interchange.hpp"
#include "chorale/layout.hpp"
#include "chorale/usage_error.hpp"
#include "compiler/simulation/costs.hpp"
#include "compiler/simulation/recording.hpp"

namespace chorale {
namespace {

using namespace simulation;
using Kind = GraphNode::Kind;
using Nodes = std::vector<uint32_t>;
using Clock = std::vector<uint32_t>;  // by chain: puts

/// Names a node of any rank.
struct NodeName {
  uint32_t rank = 0, node = 0;
};

/// Holds what the events that complete a token leave for those that wait for it.
struct TokenState {
  uint32_t left = 0;  // events that have not happened
  std::vector<NodeName> nodes;
  std::shared_ptr<const Clock> clock;  // null: it orders no puts
};

struct ChainState {
  size_t at = 0;  // the next event
  bool arrived = false;
  Nodes last;                      // what the next event waits for
  Nodes base;                      // what the current operation has waited for
  std::optional<uint32_t> pushed;  // the last send of a proxy
  std::set<uint32_t> fresh;        // peers that got a put which a signal may still follow directly
  std::vector<NodeName> puts;      // their receives
  Clock clock;
  std::shared_ptr<const Clock> published;  // the clock, until it changes
};

void unite(Nodes& all, const Nodes& more) { all.insert(all.end(), more.begin(), more.end()); }

void tidy(Nodes& nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

class GraphMaker {
 public:
  /// \param ns  whether the costs have times
  GraphMaker(const Plan& plan, const Recording& recording, const std::vector<Cost>& costs, DType dtype,
             bool ns)
      : plan_(plan),
        recording_(recording),
        costs_(costs),
        element_bytes_(dtype_size(dtype)),
        ns_(ns),
        chains_(recording.blocks.size()),
        tokens_(recording.needed.size()),
        tags_(plan.gpus.size()) {
    for (size_t token = 0; token < tokens_.size(); ++token) tokens_[token].left = recording.needed[token];
    for (ChainState& chain : chains_) chain.clock.assign(chains_.size(), 0);
    graph_.plan = plan.name;
    graph_.ranks.resize(plan.gpus.size());
    taken_.resize(plan.gpus.size());
  }

  MessageGraph run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (chain_ = 0; chain_ < chains_.size(); ++chain_) {
        while (state().at < recording_.blocks[chain_].size() &&
               event(recording_.blocks[chain_][state().at])) {
          ++state().at;
          moved = true;
        }
      }
    }
    return std::move(graph_);
  }

 private:
  ChainState& state() { return chains_[chain_]; }
  uint32_t rank() const { return recording_.ranks[chain_]; }

  std::string name_of(const Event& event) const {
    return std::string(
        info(plan_.gpus[rank()].threadblocks[recording_.positions[chain_]].ops[event.op].code).name);
  }

  /// Returns the number of the new node.
  uint32_t add(uint32_t rank, Kind kind, const std::string& name, Nodes after) {
    tidy(after);
    GraphNode node;
    node.kind = kind;
    node.name = name;
    node.block = recording_.positions[chain_];
    node.after = std::move(after);
    graph_.ranks[rank].push_back(std::move(node));
    taken_[rank].push_back(false);
    return uint32_t(graph_.ranks[rank].size() - 1);
  }

  struct Ends {
    uint32_t send = 0, receive = 0;
  };

  Ends message(uint32_t from, uint32_t to, const std::string& name, Nodes before_send, Nodes before_receive,
               std::optional<uint64_t> bytes) {
    const Ends made{add(from, Kind::send, name, std::move(before_send)),
                    add(to, Kind::receive, name, std::move(before_receive))};
    GraphNode &send = graph_.ranks[from][made.send], &receive = graph_.ranks[to][made.receive];
    send.tag = receive.tag = tags_[from][to]++;
    send.peer = to;
    receive.peer = from;
    send.bytes = receive.bytes = bytes.value_or(signal_bytes);
    send.signal = receive.signal = !bytes;
    return made;
  }

  /// Returns false if the event must wait.
  bool event(const Event& event) {
    if (event.kind == Event::Kind::arrive && !state().arrived) {
      complete(event.token, local(state().last), publish());
      state().arrived = true;
    }
    for (uint32_t k = 0; k < event.awaited; ++k) {
      if (tokens_[recording_.awaited[event.first_awaited + k]].left) return false;
    }
    switch (event.kind) {
      case Event::Kind::move:
        move(event);
        return true;
      case Event::Kind::post:
        post(event);
        return true;
      case Event::Kind::push:
        push(event);
        return true;
      case Event::Kind::take:
      case Event::Kind::drain:
        await(event, state().last);
        return true;
      case Event::Kind::arrive:
        state().arrived = false;
        await(event, state().last);
        return true;
    }
    return true;
  }

  std::vector<NodeName> local(const Nodes& nodes) const {
    std::vector<NodeName> named;
    for (const uint32_t node : nodes) named.push_back({rank(), node});
    return named;
  }

  std::shared_ptr<const Clock> publish() {
    ChainState& chain = state();
    if (!chain.published) chain.published = std::make_shared<const Clock>(chain.clock);
    return chain.published;
  }

  void complete(Token token, const std::vector<NodeName>& nodes, const std::shared_ptr<const Clock>& clock) {
    if (token == no_token) return;
    TokenState& of = tokens_[token];
    --of.left;
    of.nodes.insert(of.nodes.end(), nodes.begin(), nodes.end());
    if (!clock) return;
    if (!of.clock) {
      of.clock = clock;
      return;
    }
    Clock both = *of.clock;
    for (size_t chain = 0; chain < both.size(); ++chain) both[chain] = std::max(both[chain], (*clock)[chain]);
    of.clock = std::make_shared<const Clock>(std::move(both));
  }

  /// Adds the nodes that an event waits for to `nodes`.
  void await(const Event& event, Nodes& nodes) {
    ChainState& chain = state();
    chain.fresh.clear();
    for (uint32_t k = 0; k < event.awaited; ++k) {
      const TokenState& token = tokens_[recording_.awaited[event.first_awaited + k]];
      for (const auto& [rank, node] : token.nodes) {
        if (rank == this->rank()) take(node, nodes);
      }
      if (!token.clock) continue;
      for (size_t other = 0; other < chains_.size(); ++other) {
        const uint32_t until = (*token.clock)[other];
        if (until <= chain.clock[other]) continue;
        for (uint32_t put = chain.clock[other]; put < until; ++put) {
          const NodeName& of = chains_[other].puts[put];
          if (of.rank == rank()) take(of.node, nodes);
        }
        chain.clock[other] = until;
        chain.published.reset();
      }
    }
    tidy(nodes);
  }

  void take(uint32_t node, Nodes& nodes) {
    nodes.push_back(node);
    GraphNode& taken = graph_.ranks[rank()][node];
    if (taken.kind != Kind::receive || taken_[rank()][node]) return;
    taken_[rank()][node] = true;
    taken.block = recording_.positions[chain_];
  }

  void move(const Event& event) {
    ChainState& chain = state();
    const Cost& cost = costs_[event.move];
    const bool empty = cost.bytes == 0;
    if (!event.continued) chain.base = chain.last;
    const std::string name = name_of(event);
    Nodes begin = chain.base;
    if (event.awaited) await(event, begin);
    if (!empty) {
      const Nodes received = gets(event, cost, name, begin);
      if (!received.empty()) begin = received;
    }
    Nodes ends = begin;
    if (!empty) {
      if (const std::optional<uint32_t> work = this->work(event, cost, name, begin)) ends = {*work};
    }
    std::vector<NodeName> packets = local(ends);
    Nodes sends;
    const bool remote = puts(event, cost, name, ends, sends, packets);
    if (!remote) chain.fresh.clear();
    if (!sends.empty()) ends = sends;
    complete(event.token, packets, nullptr);
    if (event.continued) {
      unite(chain.last, ends);
      tidy(chain.last);
    } else {
      chain.last = ends;
    }
  }

  static uint64_t rounded(double value) { return uint64_t(std::llround(value)); }

  Nodes gets(const Event& event, const Cost& cost, const std::string& name, const Nodes& before) {
    Nodes received;
    for (uint32_t k = event.first_peer; k < event.first_peer + event.peers; ++k) {
      const Peer& peer = recording_.peers[k];
      if (peer.traffic != Peer::Traffic::get) continue;
      const Ends asked = message(rank(), peer.rank, name, before, {}, {});
      const Ends answer = message(peer.rank, rank(), name, {asked.receive}, {asked.send},
                                  rounded(cost.traffic_bytes[size_t(Peer::Traffic::get)]));
      received.push_back(answer.receive);
    }
    return received;
  }

  /// Adds what the block does in the memory of its rank. A put that only reads is no work without a machine.
  std::optional<uint32_t> work(const Event& event, const Cost& cost, const std::string& name,
                               const Nodes& begin) {
    const Move& move = recording_.moves[event.move];
    const uint64_t ns = ns_ ? rounded(cost.latency_ns + cost.block_ns) : 0;
    if (ns == 0 && move.writes + move.packet_writes + move.combined == 0) return {};
    const uint32_t node = add(rank(), Kind::work, name, begin);
    GraphNode& made = graph_.ranks[rank()][node];
    made.ns = ns;
    made.bytes =
        rounded(cost.bytes * (move.reads + move.writes) + cost.traffic_bytes[size_t(Peer::Traffic::packets)] *
                                                              (move.packet_reads + move.packet_writes));
    made.operations = rounded(cost.bytes) * move.combined / element_bytes_;
    return node;
  }

  /// \returns whether the event stores to a peer
  bool puts(const Event& event, const Cost& cost, const std::string& name, const Nodes& before, Nodes& sends,
            std::vector<NodeName>& packets) {
    ChainState& chain = state();
    bool any = false;
    for (uint32_t k = event.first_peer; k < event.first_peer + event.peers; ++k) {
      const Peer& peer = recording_.peers[k];
      if (peer.traffic == Peer::Traffic::get || cost.bytes == 0) continue;
      const Ends made =
          message(rank(), peer.rank, name, before, {}, rounded(cost.traffic_bytes[size_t(peer.traffic)]));
      sends.push_back(made.send);
      if (peer.traffic == Peer::Traffic::packets) {
        packets.push_back({peer.rank, made.receive});
        continue;
      }
      any = true;
      chain.puts.push_back({peer.rank, made.receive});
      ++chain.clock[chain_];
      chain.published.reset();
      chain.fresh.insert(peer.rank);
    }
    return any;
  }

  void post(const Event& event) {
    if (event.local) return complete(event.token, local(state().last), publish());
    signal(event, state().last);
  }

  /// Completes the token of a signal to a peer.
  void signal(const Event& event, const Nodes& before) {
    ChainState& chain = state();
    if (event.peers == 0) return complete(event.token, local(before), publish());  // a push of no data
    const uint32_t peer = recording_.peers[event.first_peer].rank;
    if (!event.relaxed && chain.fresh.erase(peer) > 0) return complete(event.token, {}, publish());
    const Ends made = message(rank(), peer, name_of(event), before, {}, {});
    if (event.kind == Event::Kind::push) chain.pushed = made.send;
    complete(event.token, {{peer, made.receive}}, event.relaxed ? nullptr : publish());
  }

  /// A proxy does what its orders say, one after the other. The thread block does not wait for it.
  void push(const Event& event) {
    ChainState& chain = state();
    Nodes before = chain.last;
    if (chain.pushed) before.push_back(*chain.pushed);
    Nodes sends;
    std::vector<NodeName> packets;
    if (event.move) {
      puts(event, costs_[event.move], name_of(event), before, sends, packets);
      if (!sends.empty()) chain.pushed = sends.back();
    }
    if (event.token != no_token) signal(event, before);
    std::vector<NodeName> done = local(chain.pushed ? Nodes{*chain.pushed} : before);
    done.insert(done.end(), packets.begin(), packets.end());
    complete(event.done, done, nullptr);
  }

  const Plan& plan_;
  const Recording& recording_;
  const std::vector<Cost>& costs_;
  uint64_t element_bytes_;
  bool ns_;
  std::vector<ChainState> chains_;
  std::vector<TokenState> tokens_;
  std::vector<std::map<uint32_t, uint32_t>> tags_;  // by sender and receiver: the next tag
  std::vector<std::vector<bool>> taken_;            // by rank and node: whether a thread block waits for it
  MessageGraph graph_;
  uint32_t chain_ = 0;  // the current one
};

/// Returns a machine on which transfers take no time, because the network's simulator adds theirs.
Machine without_transfers(Machine machine) {
  constexpr double no_limit = std::numeric_limits<double>::infinity();
  machine.block_put_gb_s = machine.block_get_gb_s = no_limit;
  machine.remote_read_ns = 0;
  return machine;
}

}  // namespace

MessageGraph message_graph(const Plan& plan, const SimulatedCall& call, const Machine* machine) {
  const PacketForm form = call.packet.value_or(packet_form_by_size(plan, call.bytes));
  const Layout layout = layout_of(plan, call.bytes, call.dtype, form);
  const proof::Message message = recorded_message(plan, layout.chunk_bytes);
  const Recording recording = record(plan, message);
  const std::vector<double> coded_parts = coded_parts_of(plan, call.dtype);
  const std::vector<Cost> costs =
      list_costs(recording, layout, machine ? without_transfers(*machine) : Machine{}, form, coded_parts);
  return GraphMaker(plan, recording, costs, call.dtype, machine != nullptr).run();
}

}  // namespace chorale
