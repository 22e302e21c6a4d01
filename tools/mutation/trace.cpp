#include "trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

namespace chorale::mutation {

using proof::Step;

Trace::Trace(const Plan& plan) {
  const std::vector<proof::Message> messages = proof::list_messages(plan);
  if (messages.empty()) return;
  memory_ = std::make_unique<proof::Memory>(plan, messages.back(), plan.inplace);
  if (!memory_->fits()) return;
  player_ = std::make_unique<proof::Player>(plan, *memory_);
  const size_t chains = player_->chains().size();
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) applications_.push_back(add_node({}));
  starts_ = applications_;
  now_.assign(chains, 0);
  open_.resize(chains);
  heard_.resize(chains);
  counts_.assign(chains, 0);
  round_of_.assign(chains, 0);
  streams_.resize(chains);
  posts_.resize(player_->counters().size());
  rounds_.resize(player_->meetings().size());
  cells_.resize(memory_->cells());
  proof::Choices choices;
  ended_ = player_->play(memory_->banks() + 1, choices, *this);
}

uint32_t Trace::add_node(std::vector<Edge> from) {
  nodes_.push_back({{}, false, std::move(from)});
  return uint32_t(nodes_.size() - 1);
}

uint32_t Trace::add_node(uint32_t chain, std::vector<Edge> from) {
  nodes_.push_back({player_->chains()[chain].place(), true, std::move(from)});
  return uint32_t(nodes_.size() - 1);
}

void Trace::go_on(uint32_t chain, std::vector<Edge> more) {
  more.push_back({now_[chain], true});
  now_[chain] = add_node(chain, std::move(more));
}

void Trace::begin(uint32_t rank, uint32_t launch) {
  if (launch == 0) {
    own(rank, launch, BufferKind::output, false);
    own(rank, launch, BufferKind::input, true);
  }
  starts_[rank] = applications_[rank] = add_node({{applications_[rank], true}});
  for (uint32_t chain = 0; chain < now_.size(); ++chain) {
    if (player_->chains()[chain].rank != rank) continue;
    now_[chain] = add_node({{applications_[rank], true}});
    counts_[chain] = 0;
  }
}

void Trace::end(uint32_t rank, uint32_t launch) {
  std::vector<Edge> from = {{applications_[rank], true}};
  for (uint32_t chain = 0; chain < now_.size(); ++chain) {
    if (player_->chains()[chain].rank != rank) continue;
    sync(chain);
    nodes_[now_[chain]].is_op = false;
    from.push_back({now_[chain], true});
  }
  for (const auto& [key, done] : proxies_) {
    if (player_->chains()[key.first].rank == rank) from.push_back({done.first, true});
  }
  applications_[rank] = add_node(std::move(from));
  own(rank, launch + 1, BufferKind::output, false);
  own(rank, launch + 1, BufferKind::input, true);
}

void Trace::sync(uint32_t chain) {
  go_on(chain, std::move(heard_[chain]));
  heard_[chain].clear();
  for (const AccessId& id : open_[chain]) accesses_.at(id).done = now_[chain];
  open_[chain].clear();
}

/// Adds the edges from the writers of packets that are read, as packets tell how far their writers had come.
void Trace::tell(uint32_t chain, const Step& step, std::span<const proof::Touch> touches) {
  for (const proof::Touch& touch : touches.first(step.sources)) {
    if (!touch.access->packets) continue;
    for (uint32_t cell = touch.cell; cell < touch.cell + touch.cells; ++cell) {
      const uint32_t teller = cells_[cell].teller;
      if (teller != nobody) heard_[chain].push_back({teller, false});
    }
  }
}

void Trace::move(uint32_t chain, const Step& step, std::span<const proof::Touch> touches) {
  const proof::Chain& by = player_->chains()[chain];
  const bool push = step.kind == Step::Kind::push;
  AccessId reads{AccessId::Who::block, by.rank, by.block, by.launch, counts_[chain]++}, writes = reads;
  std::string& stream = streams_[chain];
  stream += fmt::format("{}:", step.combines ? reduce_op_name(step.reduce_op) : "");
  for (const proof::Touch& touch : touches) {
    stream += fmt::format(" {}{}.{}.{}-{}", touch.access->write ? ">" : "", touch.access->rank,
                          uint32_t(touch.access->buffer), touch.range.begin, touch.range.end);
  }
  stream += "\n";
  tell(chain, step, touches);
  if (push) {
    reads.who = AccessId::Who::proxy_reads;
    writes.who = AccessId::Who::proxy_writes;
    std::pair<uint32_t, uint32_t>& done =
        proxies_.try_emplace({chain, step.id}, now_[chain], now_[chain]).first->second;
    const uint32_t begin = add_node(chain, {{now_[chain], true}, {done.first, true}, {done.second, true}});
    done.first = add_node(chain, {{begin, true}});
    accesses_[reads] = {by.place(), begin, done.first, nobody};
    done.second = add_node(chain, {{done.first, true}});
    accesses_[writes] = {by.place(), begin, done.second, nobody};
  } else {
    // This operation knows at once what its packets say; the block knows it after its next synchronisation.
    std::vector<Edge> from = heard_[chain];
    from.push_back({now_[chain], true});
    accesses_[reads] = {by.place(), add_node(chain, std::move(from)), nobody, nobody};
    open_[chain].push_back(reads);
  }
  uint32_t teller = nobody;
  if (std::any_of(touches.begin() + step.sources, touches.end(),
                  [](auto& touch) { return touch.access->packets; })) {
    teller = add_node(chain, {{accesses_[writes].begin, true}});
    accesses_[reads].told = accesses_[writes].told = teller;
  }
  for (const proof::Touch& touch : touches) {
    for (uint32_t cell = touch.cell; cell < touch.cell + touch.cells; ++cell) {
      if (!touch.access->write) {
        read(cell, reads);
        continue;
      }
      write(cell, writes);
      cells_[cell].teller = touch.access->packets ? teller : nobody;
    }
  }
}

void Trace::post(uint32_t chain, const Step& step, uint32_t counter) {
  if (step.kind == Step::Kind::push) {
    auto [entry, added] = proxies_.try_emplace({chain, step.id}, now_[chain], now_[chain]);
    const uint32_t node = add_node(chain, {{now_[chain], true}, {entry->second.second, true}});
    entry->second.second = node;
    posts_[counter].push_back({node, node, true});
    return;
  }
  go_on(chain);
  posts_[counter].push_back({now_[chain], starts_[player_->chains()[chain].rank], !step.relaxed});
}

void Trace::take(uint32_t chain, const Step& step, uint32_t counter, uint64_t first, uint64_t n) {
  std::vector<Edge> from;
  for (uint64_t at = first; at < std::min<uint64_t>(first + n, posts_[counter].size()); ++at) {
    const Post& post = posts_[counter][at];
    from.push_back({post.node, post.publishes && !step.relaxed});
    from.push_back({post.start, true});  // writes that the peer saw before its launch are always visible
  }
  go_on(chain, std::move(from));
}

void Trace::drain(uint32_t chain, const Step& step) {
  const auto found = proxies_.find({chain, step.id});
  if (found != proxies_.end()) go_on(chain, {{found->second.first, true}});
}

void Trace::arrive(uint32_t chain, uint32_t meeting) {
  const proof::Meeting& of = player_->meetings()[meeting];
  const uint32_t round = uint32_t(of.arrived / of.participants);
  if (rounds_[meeting].size() == round) {
    rounds_[meeting].push_back(add_node(chain, {}));
    if (round) nodes_[rounds_[meeting][round]].from.push_back({rounds_[meeting][round - 1], true});
  }
  nodes_[rounds_[meeting][round]].from.push_back({now_[chain], true});
  round_of_[chain] = round;
}

void Trace::leave(uint32_t chain, uint32_t meeting) {
  go_on(chain, {{rounds_[meeting][round_of_[chain]], true}});
}

void Trace::own(uint32_t rank, uint32_t launch, BufferKind kind, bool writes) {
  const proof::Range range = memory_->buffer(rank, kind);
  if (range.begin == range.end) return;
  const AccessId id{AccessId::Who::application, rank, 0, launch, writes};
  applications_[rank] = add_node({{applications_[rank], true}});
  accesses_[id] = {{rank, 0, 0}, applications_[rank], applications_[rank], nobody};
  const uint32_t first = memory_->cell(range, 0);
  for (uint32_t cell = first; cell < first + memory_->count(range); ++cell)
    writes ? write(cell, id) : read(cell, id);
}

void Trace::note(const std::optional<AccessId>& first, const AccessId& second, bool visible) {
  if (first && *first != second) pairs_.insert({*first, second, visible});
}

void Trace::read(uint32_t at, const AccessId& id) {
  Cell& cell = cells_[at];
  // Data in packets comes with its flag, so it needs no order.
  if (cell.teller == nobody) note(cell.write, id, true);
  if (std::find(cell.readers.begin(), cell.readers.end(), id) == cell.readers.end())
    cell.readers.push_back(id);
}

void Trace::write(uint32_t at, const AccessId& id) {
  Cell& cell = cells_[at];
  if (cell.readers.empty() || cell.teller == nobody) note(cell.write, id, cell.teller == nobody);
  for (const AccessId& reader : cell.readers) note(reader, id, false);
  cell.readers.clear();
  cell.write = id;
}

std::vector<uint32_t> Trace::distances(const std::vector<uint32_t>& from, bool forward) const {
  std::vector<std::vector<uint32_t>> next(forward ? nodes_.size() : 0);
  for (uint32_t node = 0; node < next.size(); ++node) {
    for (const Edge& edge : nodes_[node].from) next[edge.from].push_back(node);
  }
  std::vector<uint32_t> distance(nodes_.size(), nobody);
  std::deque<uint32_t> queue(from.begin(), from.end());
  for (const uint32_t node : from) distance[node] = 0;
  const auto visit = [&](uint32_t to, uint32_t steps) {
    if (distance[to] != nobody) return;
    distance[to] = steps;
    queue.push_back(to);
  };
  while (!queue.empty()) {
    const uint32_t node = queue.front();
    queue.pop_front();
    if (forward) {
      for (const uint32_t to : next[node]) visit(to, distance[node] + 1);
    } else {
      for (const Edge& edge : nodes_[node].from) visit(edge.from, distance[node] + 1);
    }
  }
  return distance;
}

std::vector<Pair> Trace::pairs_through(const OpPlace& at) const {
  const auto same = [&](const OpPlace& other) {
    return other.rank == at.rank && other.threadblock == at.threadblock && other.op == at.op;
  };
  std::vector<uint32_t> of_op;
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].is_op && same(nodes_[node].at)) of_op.push_back(node);
  }
  const std::vector<uint32_t> before = distances(of_op, false), behind = distances(of_op, true);
  std::vector<std::pair<uint32_t, Pair>> found;
  for (const Pair& pair : pairs_) {
    const Access &first = accesses_.at(pair.first), &second = accesses_.at(pair.second);
    const bool is_one = pair.first.who != AccessId::Who::application && same(first.at);
    const bool is_other = pair.second.who != AccessId::Who::application && same(second.at);
    if (is_one || is_other) {
      found.emplace_back(0, pair);
      continue;
    }
    uint32_t least = first.done == nobody ? nobody : before[first.done];
    if (first.told != nobody && !pair.visible) least = std::min(least, before[first.told]);
    if (least != nobody && behind[second.begin] != nobody)
      found.emplace_back(least + behind[second.begin], pair);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Pair> pairs;
  for (const auto& [distance, pair] : found) pairs.push_back(pair);
  return pairs;
}

std::optional<std::vector<OpPlace>> Trace::path(const Pair& pair) const {
  const auto first = accesses_.find(pair.first), second = accesses_.find(pair.second);
  if (first == accesses_.end() || second == accesses_.end()) return {};
  const uint32_t start = second->second.begin;
  uint32_t goal = first->second.done;
  std::map<uint32_t, uint32_t> towards = {{start, start}};  // by node: the next one towards the second
  std::deque<uint32_t> queue = {start};
  while (!queue.empty() && !towards.count(goal)) {
    if (!pair.visible && towards.count(first->second.told)) goal = first->second.told;
    const uint32_t node = queue.front();
    queue.pop_front();
    for (const Edge& edge : nodes_[node].from) {
      if (pair.visible && !edge.visible) continue;
      if (towards.emplace(edge.from, node).second) queue.push_back(edge.from);
    }
  }
  if (!towards.count(goal)) return {};
  std::vector<OpPlace> places;
  for (uint32_t node = goal; node != start; node = towards[node]) {
    if (!nodes_[node].is_op) continue;
    const OpPlace& at = nodes_[node].at;
    // The path keeps only the first and the last of consecutive operations of a block.
    const auto in_block = [&](const OpPlace& other) {
      return other.rank == at.rank && other.threadblock == at.threadblock;
    };
    if (places.size() > 1 && in_block(places.back()) && in_block(places[places.size() - 2]))
      places.pop_back();
    places.push_back(at);
  }
  return places;
}

}  // namespace chorale::mutation
