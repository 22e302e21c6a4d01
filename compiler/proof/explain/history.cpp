// Each function does to the graph what the function of the same name in order.cpp does to clocks. Two things
// are coarser. In the graph, a packet tells everything that its writer had read, and a switch's addresses are
// the same as plain ones. So the graph may order more than the proof does. It is used only for explanations,
// never for verdicts.

#include "history.hpp"

#include <algorithm>

namespace chorale::proof {

uint32_t launches_of(const Finding& finding) {
  uint32_t launches = 1;
  for (const ProofEvent& event : finding.events) {
    // The application's accesses after a launch have the number of the next one.
    const bool application = event.who == ProofEvent::Who::application;
    launches = std::max(launches, event.launch + (application ? 0 : 1));
  }
  return launches;
}

History::History(const SymbolicExecutor& executor)
    : executor_(executor),
      tracks_(executor.chains().size()),
      begun_(executor.plan().ranks(), none),
      ended_(executor.plan().ranks(), none),
      tokens_(executor.counters().size()),
      rounds_(executor.barriers().size()),
      round_of_(executor.chains().size()),
      writer_(executor.memory().cells(), none) {}

Node& History::add(Node::Kind kind) {
  if (!complete()) {  // the last node is replaced
    causes_.resize(nodes_.back().first_cause);
    reads_.resize(nodes_.back().first_read);
    nodes_.pop_back();
  }
  Node& node = nodes_.emplace_back();
  node.kind = kind;
  node.first_cause = uint32_t(causes_.size());
  node.first_read = uint32_t(reads_.size());
  return node;
}

Node& History::add(uint32_t at, Node::Kind kind) {
  const Chain& chain = executor_.chains()[at];
  Node& node = add(kind);
  node.chain = at;
  node.op = chain.op;
  node.launch = chain.launch;
  node.segment = tracks_[at].segment;
  node.turn = chain.turn.first;
  behind(tracks_[at].spine);
  return node;
}

Node& History::add_to_spine(uint32_t chain, Node::Kind kind) {
  Node& node = add(chain, kind);
  tracks_[chain].spine = last();
  return node;
}

void History::begin(uint32_t rank, uint32_t launch) {
  Node& node = add(Node::Kind::begin);
  node.chain = rank;
  node.launch = launch;
  behind(ended_[rank]);
  begun_[rank] = last();
  for (uint32_t block = 0; block < executor_.plan().gpus[rank].threadblocks.size(); ++block)
    tracks_[executor_.chain_of(rank, block)].spine = last();
}

void History::end(uint32_t rank, uint32_t launch) {
  Node& node = add(Node::Kind::end);
  node.chain = rank;
  node.launch = launch;
  for (uint32_t block = 0; block < executor_.plan().gpus[rank].threadblocks.size(); ++block) {
    Track& track = tracks_[executor_.chain_of(rank, block)];
    behind(track.spine);
    for (const uint32_t move : track.moves) behind(move);
    track.moves.clear();
    ++track.segment;
  }
  // A launch ends when its proxies have read everything that they were given.
  for (auto& [key, proxy] : proxies_) {
    if (executor_.chains()[key.first].rank != rank) continue;
    for (const uint32_t reads : proxy.unread) behind(reads, Cause::Kind::alone);
    proxy.unread.clear();
  }
  ended_[rank] = last();
}

void History::sync(uint32_t at) {
  Track& track = tracks_[at];
  const Chain& chain = executor_.chains()[at];
  const Opcode code = executor_.plan().gpus[chain.rank].threadblocks[chain.block].ops[chain.op].code;
  if (!track.moves.empty() || code == Opcode::nop) add_to_spine(at, Node::Kind::sync);
  for (const uint32_t move : track.moves) behind(move);
  track.moves.clear();
  ++track.segment;
}

void History::post(uint32_t chain, const SymbolicStep& step, uint32_t counter) {
  const uint32_t start = begun_[executor_.chains()[chain].rank];
  if (step.kind == SymbolicStep::Kind::push) {
    add(chain, Node::Kind::control);
    const auto proxy = proxies_.find({chain, step.id});
    if (proxy != proxies_.end()) {
      behind(proxy->second.reads);
      behind(proxy->second.writes);
    }
  } else {
    add_to_spine(chain, Node::Kind::control);
  }
  nodes_.back().id = step.position;
  tokens_[counter].push_back({last(), start, step.relaxed});
}

void History::take(uint32_t chain, const SymbolicStep& step, uint32_t counter, uint64_t first, uint64_t n) {
  Node& node = add_to_spine(chain, Node::Kind::control);
  node.id = step.position;
  for (uint64_t at = first; at < first + n; ++at) {
    const Token& token = tokens_[counter][at];
    const bool relaxed = token.relaxed || step.relaxed;
    behind(token.node, relaxed ? Cause::Kind::over : Cause::Kind::publishes);
    // A relaxed post still shows what was visible at the beginning of the poster's launch.
    if (relaxed) behind(token.start);
  }
}

void History::drain(uint32_t chain, const SymbolicStep& step) {
  Node& node = add_to_spine(chain, Node::Kind::control);
  node.id = step.position;
  const auto proxy = proxies_.find({chain, step.id});
  if (proxy == proxies_.end()) return;
  for (const uint32_t reads : proxy->second.unread) behind(reads, Cause::Kind::alone);
  proxy->second.unread.clear();
}

void History::arrive(uint32_t chain, uint32_t barrier) {
  add_to_spine(chain, Node::Kind::control);
  const Barrier& of = executor_.barriers()[barrier];
  const size_t round = size_t(of.arrived / of.participants);
  auto& rounds = rounds_[barrier];
  // A block that arrives later has seen everything that came before, in this round or in an earlier one.
  if (rounds.size() == round) rounds.push_back(round ? rounds[round - 1] : std::map<uint32_t, uint32_t>());
  rounds[round][chain] = last();
  round_of_[chain] = round;
}

void History::leave(uint32_t chain, uint32_t barrier) {
  add_to_spine(chain, Node::Kind::control);
  for (const auto& [member, arrived] : rounds_[barrier][round_of_[chain]]) {
    if (member != chain) behind(arrived);
  }
}

void History::move(uint32_t chain, const SymbolicStep& step, std::span<const Touch> touches) {
  const std::span<const Touch> sources = touches.first(step.sources), dests = touches.subspan(step.sources);
  if (step.kind != SymbolicStep::Kind::push) {
    add(chain, Node::Kind::move);
    tracks_[chain].moves.push_back(last());
    read_cells(sources, true);
    write_cells(dests);
    return;
  }
  Proxy& proxy = proxies_[{chain, step.id}];
  const uint32_t reads = proxy.reads, writes = proxy.writes;
  for (const Node::Kind kind : {Node::Kind::proxy_reads, Node::Kind::proxy_writes}) {
    Node& node = add(chain, kind);
    node.segment = proxy.segment;
    behind(reads);
    behind(writes);
  }
  ++proxy.segment;
  proxy.writes = last();
  proxy.reads = last() - 1;
  proxy.unread.push_back(proxy.reads);
  read_cells(sources, false);
  write_cells(dests);
}

/// Records that the newest node reads cells. With `packets_too`, packets also tell how far their writers have
/// come.
void History::read_cells(std::span<const Touch> touches, bool packets_too) {
  const auto first = ptrdiff_t(nodes_.back().first_read);
  for (const Touch& touch : touches) {
    uint32_t before = none;
    for (uint32_t cell = touch.cell; cell < touch.cell + touch.cells; ++cell) {
      const uint32_t writer = writer_[cell];
      if (writer == none || writer == before) continue;
      before = writer;
      if (std::find(reads_.begin() + first, reads_.end(), writer) != reads_.end()) continue;
      reads_.push_back(writer);
      if (touch.access->packets && packets_too) behind(writer, Cause::Kind::over);
    }
  }
}

void History::write_cells(std::span<const Touch> touches) {
  for (const Touch& touch : touches) {
    nodes_.back().packets |= touch.access->packets;
    std::fill_n(writer_.begin() + touch.cell, touch.cells, last());
  }
}

std::vector<uint32_t> History::posts(uint32_t counter) const {
  std::vector<uint32_t> nodes;
  for (const Token& token : tokens_[counter]) nodes.push_back(token.node);
  return nodes;
}

uint32_t History::find(const ProofEvent& event) const {
  using Who = ProofEvent::Who;
  const bool application = event.who == Who::application;
  for (uint32_t at = 0; at < nodes_.size(); ++at) {
    const Node& node = nodes_[at];
    const bool boundary = node.kind == Node::Kind::begin || node.kind == Node::Kind::end;
    if (application != boundary) continue;
    if (application) {
      // A launch has two segments, and the application accesses memory between launches: see Races::begin()
      // and end().
      if (node.chain != event.at.rank) continue;
      const uint32_t around = event.segment / 2;
      if (node.kind == Node::Kind::begin ? node.launch == around : node.launch + 1 == around) return at;
      continue;
    }
    if (place(node) != event.at || node.launch != event.launch ||
        (event.segment != any && node.segment != event.segment))
      continue;
    const bool by_proxy = node.kind == Node::Kind::proxy_reads || node.kind == Node::Kind::proxy_writes;
    if (event.who == Who::proxy ? by_proxy && (node.kind == Node::Kind::proxy_writes) == event.writes
                                : !by_proxy && (!event.accesses || node.kind == Node::Kind::move))
      return at;
  }
  return none;
}

}  // namespace chorale::proof
