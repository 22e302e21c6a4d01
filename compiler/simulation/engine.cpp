// An actor is a thread block or the proxy of a rank. The earliest actor proceeds, and among equals the one
// with the lowest number, so the same launch always gives the same times. An actor proceeds alone until it
// must wait for a token or another actor is earlier.
//
// A move reserves the links and memories that it needs piece by piece. A link or memory is free again when
// all earlier reservations have passed. Max-min fair shares would need a new solution at every beginning and
// end of a move. Pieces need one reservation each and come close to fair shares, because blocks that move
// data at the same time alternate. Moves are cut only if they are longer than a few pieces.

#include "engine.hpp"

#include <algorithm>
#include <deque>

#include "heap.hpp"
#include "network.hpp"

namespace chorale::simulation {
namespace {

constexpr double piece_bytes = 2048;
constexpr uint32_t most_pieces = 4;

struct Memory {
  double free_ns = 0, busy_ns = 0;

  double take(double now, double ns) {
    free_ns = std::max(free_ns, now) + ns;
    busy_ns += ns;
    return free_ns;
  }
};

struct GpuState {
  Memory memory;
  double bytes_out = 0, bytes_in = 0;
};

/// Holds an order for the proxy, and the time at which the proxy has read it.
struct Order {
  const Event* event;
  double ready_ns;
};

struct Actor {
  double now = 0;
  double sent = 0;      // its packets have left
  uint32_t at = 0;      // the next event
  uint32_t waited = 0;  // number of its tokens that have arrived
  uint32_t piece = 0;   // the next piece of its move
  bool begun = false;
  bool idle = true;   // a proxy without orders
  double far_ns = 0;  // latency of the topology that the loads of its operation have waited for
  uint32_t next_waiting = ~uint32_t{0};
};

class Engine {
 public:
  Engine(const Recording& recording, const std::vector<Cost>& costs, const Machine& machine,
         const Routes* routes, uint32_t ranks, bool ops)
      : recording_(recording),
        costs_(costs),
        machine_(machine),
        network_(machine, routes, ranks),
        gpus_(ranks),
        orders_(ranks),
        proxy_free_(ranks, 0),
        chains_(uint32_t(recording.blocks.size())),
        actors_(recording.blocks.size() + ranks),
        left_(recording.needed),
        come_(recording.needed.size(), 0),
        waiting_(recording.needed.size(), nobody) {
    if (ops) times_.ops.resize(chains_);
    times_.ends_ns.resize(chains_);
  }

  Times run() {
    for (uint32_t chain = 0; chain < chains_; ++chain) push(chain);
    while (!heap_.empty()) {
      const uint32_t actor = heap_.hold();
      const bool again = actor < chains_ ? go_on(actor) : execute_order(actor - chains_);
      if (again) {
        heap_.replace_top({actors_[actor].now, actor});
      } else {
        heap_.pop();
      }
    }
    for (uint32_t rank = 0; rank < gpus_.size(); ++rank) {
      const GpuState& gpu = gpus_[rank];
      const auto [out_ns, in_ns] = network_.busy_ns(rank);
      times_.links.push_back(
          {uint64_t(gpu.bytes_out + 0.5), uint64_t(gpu.bytes_in + 0.5), out_ns, in_ns, gpu.memory.busy_ns});
    }
    times_.topology_busy_ns = network_.busy_ns();
    return std::move(times_);
  }

 private:
  static constexpr uint32_t nobody = ~uint32_t{0};

  void push(uint32_t actor) { heap_.push({actors_[actor].now, actor}); }

  /// Lets an actor proceed. Returns false if it has ended or waits for a token, and true if others are
  /// earlier.
  bool go_on(uint32_t at) {
    Actor& actor = actors_[at];
    const std::vector<Event>& events = recording_.blocks[at];
    while (actor.at < events.size()) {
      const Event& event = events[actor.at];
      if (!actor.begun) {
        begin(at, event);
        if (!actor.begun) continue;
        // Actors reserve ports in the order of time.
        if (event.kind != Event::Kind::take && heap_.any_before({actor.now, at})) return true;
      }
      if (!await(at, event)) return false;
      if (finish(at, event)) {
        next(actor);
      } else if (heap_.any_before({actor.now, at})) {
        return true;
      }
    }
    times_.ends_ns[at] = actor.now;
    times_.end_ns = std::max({times_.end_ns, actor.now, actor.sent});
    return false;
  }

  void next(Actor& actor) {
    ++actor.at;
    actor.begun = false;
    actor.waited = actor.piece = 0;
  }

  /// Adds the cost of an event before it waits for anything. An event that leaves nothing to do is skipped.
  void begin(uint32_t at, const Event& event) {
    Actor& actor = actors_[at];
    if (event.kind == Event::Kind::move && costs_[event.move].bytes == 0 && event.token == no_token &&
        event.awaited == 0) {
      next(actor);
      return;
    }
    if (!times_.ops.empty()) {
      std::vector<OpTime>& ops = times_.ops[at];
      if (ops.empty() || ops.back().op != event.op) ops.push_back({event.op, actor.now});
    }
    actor.begun = true;
    if (event.synced) actor.now += machine_.sync_ns;
    if (!event.continued) {
      actor.now += machine_.issue_ns;
      if (event.kind == Event::Kind::post && !event.relaxed) actor.now += machine_.release_ns;
    }
    if (event.kind == Event::Kind::arrive) make(event.token, actor.now);
    if (event.kind == Event::Kind::move && event.awaited == 0) start(actor, recording_.ranks[at], event);
  }

  /// Adds the time until the first bytes of a move arrive. The loads of one operation run concurrently.
  void start(Actor& actor, uint32_t rank, const Event& event) {
    actor.now += event.continued ? machine_.operand_ns : costs_[event.move].latency_ns;
    if (!event.continued) actor.far_ns = 0;
    const double far = latency_ns(rank, event, true);
    actor.now += std::max(0.0, far - actor.far_ns);
    actor.far_ns = std::max(actor.far_ns, far);
    actor.piece = 1;
  }

  /// Returns the largest latency that the topology adds to the loads of a move, there and back, or to its
  /// stores.
  double latency_ns(uint32_t rank, const Event& event, bool loads) const {
    double most = 0;
    for (uint32_t at = event.first_peer; at < event.first_peer + event.peers; ++at) {
      const Peer& peer = recording_.peers[at];
      if ((peer.traffic == Peer::Traffic::get) != loads) continue;
      const double there = network_.latency_ns(rank, peer.rank);
      most = std::max(most, loads ? there + network_.latency_ns(peer.rank, rank) : there);
    }
    return most;
  }

  /// Returns false if the event still waits for something.
  bool await(uint32_t at, const Event& event) {
    Actor& actor = actors_[at];
    for (; actor.waited < event.awaited; ++actor.waited) {
      const Token token = recording_.awaited[event.first_awaited + actor.waited];
      if (left_[token]) {
        actor.next_waiting = waiting_[token];
        waiting_[token] = at;
        return false;
      }
      actor.now = std::max(actor.now, come_[token]);
    }
    return true;
  }

  /// Adds the cost of an event after its wait. Returns false if the event has not ended, or if time has
  /// passed in which others may act first.
  bool finish(uint32_t at, const Event& event) {
    Actor& actor = actors_[at];
    switch (event.kind) {
      case Event::Kind::move:
        return move(actor, recording_.ranks[at], event);
      case Event::Kind::post:
        make(event.token, event.local ? actor.now + machine_.semaphore_ns
                                      : cross_signal(recording_.ranks[at], event, actor.now));
        return true;
      case Event::Kind::take:
        if (!event.continued && !event.relaxed) actor.now += machine_.acquire_ns;
        return true;
      case Event::Kind::push:
        order(recording_.ranks[at], event, actor.now);
        return true;
      case Event::Kind::drain:
        return true;
      case Event::Kind::arrive:
        actor.now += machine_.barrier_ns + recording_.needed[event.token] * machine_.barrier_block_ns;
        return true;
    }
    return true;
  }

  bool move(Actor& actor, uint32_t rank, const Event& event) {
    const Cost& cost = costs_[event.move];
    const uint32_t pieces = pieces_of(cost);
    if (actor.piece == 0) {
      start(actor, rank, event);
      return false;
    }
    const double part = 1.0 / pieces;
    double end = actor.now + cost.block_ns * part;
    double sent = std::max(actor.now, actor.sent) + cost.send_ns * part;
    end = std::max(end, gpus_[rank].memory.take(actor.now, cost.memory_ns * part));
    for (uint32_t peer = event.first_peer; peer < event.first_peer + event.peers; ++peer) {
      const Peer& to = recording_.peers[peer];
      const size_t traffic = size_t(to.traffic);
      const bool from_there = to.traffic == Peer::Traffic::get;
      const double ns = cost.traffic_ns[traffic] * part;
      double& until = to.traffic == Peer::Traffic::packets ? sent : end;
      until = std::max(until, cross(from_there ? to.rank : rank, from_there ? rank : to.rank, actor.now, ns,
                                    cost.traffic_bytes[traffic] * part));
      until = std::max(until, gpus_[to.rank].memory.take(actor.now, cost.peer_memory_ns[traffic] * part));
    }
    actor.now = end;
    actor.sent = sent;
    if (++actor.piece <= pieces) return false;
    if (event.token != no_token) {
      const bool far = recording_.moves[event.move].packet_puts != 0;
      make(event.token, std::max(actor.now, far ? actor.sent : 0) +
                            (far ? machine_.packet_ns : machine_.local_packet_ns) +
                            latency_ns(rank, event, false));
    }
    return true;
  }

  static uint32_t pieces_of(const Cost& cost) {
    return uint32_t(std::clamp(cost.bytes / piece_bytes, 1.0, double(most_pieces)));
  }

  double cross(uint32_t from, uint32_t to, double now, double ns, double bytes) {
    gpus_[from].bytes_out += bytes;
    gpus_[to].bytes_in += bytes;
    return network_.carry(from, to, now, ns, bytes);
  }

  /// Returns the time at which a signal is visible.
  double cross_signal(uint32_t rank, const Event& event, double now) {
    return network_.signal(rank, recording_.peers[event.first_peer].rank, now);
  }

  /// Passes an order to the proxy. The proxy reads one order after the other, and its copy engine executes
  /// them in that order.
  void order(uint32_t rank, const Event& event, double now) {
    proxy_free_[rank] = std::max(proxy_free_[rank], now) + machine_.proxy_ns;
    orders_[rank].push_back({&event, proxy_free_[rank]});
    Actor& proxy = actors_[chains_ + rank];
    if (!proxy.idle) return;
    proxy.idle = false;
    proxy.now = std::max(proxy.now, proxy_free_[rank]);
    push(chains_ + rank);
  }

  /// Executes the next piece of an order. Returns false if there are no more orders.
  bool execute_order(uint32_t rank) {
    Actor& proxy = actors_[chains_ + rank];
    const Event& event = *orders_[rank].front().event;
    const Cost& cost = costs_[event.move];
    const uint32_t pieces = pieces_of(cost);
    if (cost.bytes > 0) {
      if (!proxy.begun) {
        proxy.begun = true;
        proxy.now += machine_.copy_engine_ns;
        return true;
      }
      const double part = 1.0 / pieces;
      double end = gpus_[rank].memory.take(proxy.now, cost.memory_ns * part);
      for (uint32_t peer = event.first_peer; peer < event.first_peer + event.peers; ++peer) {
        end = std::max(end, cross(rank, recording_.peers[peer].rank, proxy.now, cost.copy_engine_ns * part,
                                  cost.bytes * part));
      }
      proxy.now = end;
      if (++proxy.piece < pieces) return true;
    }
    const double far = latency_ns(rank, event, false);
    make(event.done, proxy.now + far);
    if (event.token != no_token) make(event.token, proxy.now + machine_.signal_ns + far);
    proxy.begun = false;
    proxy.piece = 0;
    orders_[rank].pop_front();
    proxy.idle = orders_[rank].empty();
    if (proxy.idle) return false;
    proxy.now = std::max(proxy.now, orders_[rank].front().ready_ns);
    return true;
  }

  /// Records that one of the events that complete a token has happened.
  void make(Token token, double ns) {
    come_[token] = std::max(come_[token], ns);
    if (--left_[token]) return;
    for (uint32_t at = waiting_[token]; at != nobody;) {
      Actor& actor = actors_[at];
      const uint32_t after = actor.next_waiting;
      actor.now = std::max(actor.now, come_[token]);
      push(at);
      at = after;
    }
    waiting_[token] = nobody;
  }

  const Recording& recording_;
  const std::vector<Cost>& costs_;
  const Machine& machine_;
  Network network_;
  std::vector<GpuState> gpus_;
  std::vector<std::deque<Order>> orders_;  // by rank
  std::vector<double> proxy_free_;
  const uint32_t chains_;
  std::vector<Actor> actors_;  // the chains, then the proxies of the ranks
  std::vector<uint32_t> left_;
  std::vector<double> come_;
  std::vector<uint32_t> waiting_;  // by token: the last of the actors that wait for it
  Heap heap_;
  Times times_;
};

}  // namespace

Times run(const Recording& recording, const std::vector<Cost>& costs, const Machine& machine,
          const Routes* routes, uint32_t ranks, bool ops) {
  return Engine(recording, costs, machine, routes, ranks, ops).run();
}

}  // namespace chorale::simulation
