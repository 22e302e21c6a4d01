// One execution of the symbolic executor says which event waits for which. In all executions, the n-th take
// of a counter comes after its n-th post, a barrier after its arrivals, and a read of packets after their
// writes. If blocks compete, this execution is one of several possible ones.

#include "recording.hpp"

#include <algorithm>
#include <unordered_map>

#include "chorale/usage_error.hpp"

namespace chorale::simulation {
namespace {

using proof::Chain;
using proof::SymbolicStep;
using proof::Touch;

struct MoveHash {
  size_t operator()(const Move& move) const {
    uint64_t hash = move.begin * 0x9e3779b97f4a7c15u + move.end;
    for (const uint64_t part :
         {uint64_t(move.reads), uint64_t(move.writes), uint64_t(move.gets), uint64_t(move.puts),
          uint64_t(move.packet_reads), uint64_t(move.packet_writes), uint64_t(move.packet_puts),
          uint64_t(move.coded_reads), uint64_t(move.coded_writes), uint64_t(move.coded_gets),
          uint64_t(move.coded_puts), uint64_t(move.codec), uint64_t(move.combined), uint64_t(move.buffer)})
      hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
    return size_t(hash ^ (hash >> 32));
  }
};

class Recorder : public proof::Observer {
 public:
  Recorder(const proof::SymbolicExecutor& executor, Recording& out)
      : executor_(executor),
        out_(out),
        blocks_(executor.chains().size()),
        posts_(executor.counters().size()),
        rounds_(executor.barriers().size()) {
    if (executor.memory().any_packets()) writers_.assign(executor.memory().cells(), no_token);
    out.blocks.resize(executor.chains().size());
    for (const Chain& chain : executor.chains()) {
      out.ranks.push_back(chain.rank);
      out.positions.push_back(chain.block);
    }
    out.moves.emplace_back();
  }

  void sync(uint32_t chain) override { blocks_[chain].synced = true; }

  void move(uint32_t chain, const SymbolicStep& step, std::span<const Touch> touches) override {
    const bool push = step.kind == SymbolicStep::Kind::push;
    Event event;
    event.kind = push ? Event::Kind::push : Event::Kind::move;
    event.first_awaited = uint32_t(out_.awaited.size());
    event.move = describe(chain, step, touches, event);
    event.awaited = uint32_t(out_.awaited.size()) - event.first_awaited;
    if (push) event.done = transfers_[transfer(chain, step)] = token(1);
    for (const Touch& touch : touches) {
      if (!touch.access->packets || !touch.access->write) continue;
      if (event.token == no_token && !push) event.token = token(1);
      const Token written = push ? event.done : event.token;
      std::fill_n(writers_.begin() + touch.cell, touch.cells, written);
    }
    add(chain, event);
  }

  void post(uint32_t chain, const SymbolicStep& step, uint32_t counter) override {
    const Token posted = token(1);
    posts_[counter].push_back(posted);
    // The symbolic executor reports a transfer first, and then the signal after it.
    const bool push = step.kind == SymbolicStep::Kind::push;
    if (push && step.sources + step.dests) {
      out_.blocks[chain].back().token = posted;
      return;
    }
    Event event;
    event.kind = push ? Event::Kind::push : Event::Kind::post;
    event.relaxed = step.relaxed;
    event.local = step.kind == SymbolicStep::Kind::release;
    event.token = posted;
    if (!event.local) {
      event.first_peer = uint32_t(out_.peers.size());
      event.peers = 1;
      out_.peers.push_back(
          {uint32_t(executor_.plan().gpus[executor_.chains()[chain].rank].peer(step.via, step.id)),
           Peer::Traffic::put});
    }
    if (push) event.done = transfers_[transfer(chain, step)] = token(1);
    add(chain, event);
  }

  void take(uint32_t chain, const SymbolicStep& step, uint32_t counter, uint64_t first, uint64_t n) override {
    Event event;
    event.kind = Event::Kind::take;
    event.relaxed = step.relaxed;
    event.local = step.kind == SymbolicStep::Kind::acquire;
    event.first_awaited = uint32_t(out_.awaited.size());
    const proof::Counter& of = executor_.counters()[counter];
    // If several chains post, these are the posts made in this execution.
    if (n == 0 && of.takes > of.initial) {
      first = of.takes - of.initial - 1;
      n = 1;
    }
    for (uint64_t post = first; post < first + n; ++post) out_.awaited.push_back(posts_[counter][post]);
    event.awaited = uint32_t(n);
    add(chain, event);
  }

  void drain(uint32_t chain, const SymbolicStep& step) override {
    Event event;
    event.kind = Event::Kind::drain;
    event.first_awaited = uint32_t(out_.awaited.size());
    const auto last = transfers_.find(transfer(chain, step));
    if (last != transfers_.end()) out_.awaited.push_back(last->second);
    event.awaited = uint32_t(out_.awaited.size()) - event.first_awaited;
    add(chain, event);
  }

  void arrive(uint32_t chain, uint32_t barrier) override {
    const proof::Barrier& of = executor_.barriers()[barrier];
    const size_t round = of.arrived / of.participants;
    if (rounds_[barrier].size() <= round) rounds_[barrier].push_back(token(of.participants));
    Event event;
    event.kind = Event::Kind::arrive;
    event.token = rounds_[barrier][round];
    event.first_awaited = uint32_t(out_.awaited.size());
    event.awaited = 1;
    out_.awaited.push_back(event.token);
    add(chain, event);
  }

 private:
  struct Block {
    bool synced = false;
    uint32_t op = ~uint32_t{0};  // the last operation that was counted, and its turn
    uint64_t turn = 0;
  };

  Token token(uint32_t needed) {
    out_.needed.push_back(needed);
    return Token(out_.needed.size() - 1);
  }

  uint64_t transfer(uint32_t chain, const SymbolicStep& step) const {
    return uint64_t(executor_.chains()[chain].rank) << 32 | step.id;
  }

  /// Returns the number of the move; 0 if nothing is moved.
  uint32_t describe(uint32_t chain, const SymbolicStep& step, std::span<const Touch> touches, Event& event) {
    if (touches.empty() || touches[0].range.begin == touches[0].range.end) return 0;
    const uint32_t rank = executor_.chains()[chain].rank;
    Move move;
    move.end = touches[0].range.end - touches[0].range.begin;
    event.first_peer = uint32_t(out_.peers.size());
    for (const Touch& touch : touches) {
      const proof::Access& access = *touch.access;
      const bool here = access.rank == rank;
      if (access.packets && !access.write) wait_for(touch);
      if (!here) {
        const Peer::Traffic traffic = !access.write    ? Peer::Traffic::get
                                      : access.packets ? Peer::Traffic::packets
                                                       : Peer::Traffic::put;
        out_.peers.push_back({access.rank, traffic});
      }
      uint16_t& count = access.packets ? (!access.write ? move.packet_reads
                                          : here        ? move.packet_writes
                                                        : move.packet_puts)
                        : access.write ? (here ? move.writes : move.puts)
                                       : (here ? move.reads : move.gets);
      ++count;
      if (access.codec) {
        move.codec = access.codec;
        ++(access.write ? (here ? move.coded_writes : move.coded_puts)
                        : (here ? move.coded_reads : move.coded_gets));
      }
      if (access.buffer == BufferKind::scratch || access.packets || move.buffer != BufferKind::scratch)
        continue;
      move.buffer = access.buffer;
      move.begin = touch.range.begin;
      move.end = touch.range.end;
    }
    event.peers = uint16_t(out_.peers.size() - event.first_peer);
    if (step.combines && step.sources > 1) move.combined = uint16_t(step.sources - 1);
    const auto [found, added] = known_.try_emplace(move, uint32_t(out_.moves.size()));
    if (added) out_.moves.push_back(move);
    return found->second;
  }

  void wait_for(const Touch& touch) {
    Token last = no_token;
    for (uint32_t cell = touch.cell; cell < touch.cell + touch.cells; ++cell) {
      if (writers_[cell] != last) out_.awaited.push_back(last = writers_[cell]);
    }
  }

  void add(uint32_t at, Event event) {
    const Chain& chain = executor_.chains()[at];
    Block& block = blocks_[at];
    const bool earlier = chain.body_end != 0 && chain.turns_left > 1;
    event.op = earlier ? chain.body - 1 : chain.op;
    event.synced = block.synced;
    const bool same = block.op == chain.op && block.turn == chain.turn.first && !out_.blocks[at].empty();
    event.continued = same && !event.synced && out_.blocks[at].back().kind == event.kind;
    block = {false, chain.op, chain.turn.first};
    out_.blocks[at].push_back(event);
  }

  const proof::SymbolicExecutor& executor_;
  Recording& out_;
  std::vector<Block> blocks_;
  std::vector<std::vector<Token>> posts_, rounds_;  // by counter, by barrier
  std::vector<Token> writers_;                      // by cell of packets
  std::unordered_map<uint64_t, Token> transfers_;   // by rank and channel: the last transfer
  std::unordered_map<Move, uint32_t, MoveHash> known_;
};

uint64_t count_ops(const Plan& plan, const proof::Message& message) {
  uint64_t limit = proof::max_executed;
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) {
      if (!proof::for_each_turn(message, block, limit, [](const Op&, const proof::Turn&) {})) {
        throw UsageError("plan '" + plan.name + "' has more than " + std::to_string(proof::max_executed) +
                         " operations with all turns of its pipelines: simulate a shorter message");
      }
    }
  }
  return proof::max_executed - limit;
}

}  // namespace

proof::Message recorded_message(const Plan& plan, uint64_t chunk_bytes) {
  const std::optional<proof::Message> message = proof::message_of_all_turns(plan, chunk_bytes);
  if (message) return *message;
  throw UsageError(
      "plan '" + plan.name +
      "' shares chunks among groups of thread blocks of too many different sizes to be simulated");
}

Recording record(const Plan& plan, const proof::Message& message) {
  Recording recording;
  recording.message = message;
  recording.ops = count_ops(plan, message);
  const proof::Memory memory(plan, message, false);
  if (!memory.fits()) {
    throw UsageError("plan '" + plan.name +
                     "' is cut into more parts than the simulator keeps: simulate a shorter message");
  }
  proof::SymbolicExecutor executor(plan, memory);
  Recorder recorder(executor, recording);
  proof::Choices choices;
  if (!executor.run(1, choices, recorder)) {
    throw UsageError("plan '" + plan.name + "' does not end: chorale check says where it stops");
  }
  return recording;
}

}  // namespace chorale::simulation
