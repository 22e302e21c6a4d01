#include "slice.hpp"

#include <algorithm>
#include <set>

#include "compiler/plan/report.hpp"
#include "compiler/proof/execution/findings.hpp"

namespace chorale::proof {
namespace {

using Who = ProofEvent::Who;

bool is_boundary(const Node& node) { return node.kind == Node::Kind::begin || node.kind == Node::Kind::end; }

}  // namespace

bool Slice::speaks(uint32_t at) const {
  const Node& node = history_.nodes()[at];
  switch (node.kind) {
    case Node::Kind::sync:
    case Node::Kind::begin:  // in a later launch, the end of the launch before shows it
      return false;
    default:
      return true;
  }
}

std::string Slice::who(uint32_t at) const {
  const Node& node = history_.nodes()[at];
  if (is_boundary(node)) return rank_name(node.chain);
  const Chain& chain = history_.executor().chains()[node.chain];
  return rank_name(chain.rank) + ", thread block " + number(chain.block);
}

std::string Slice::name(uint32_t at) const {
  const Node& node = history_.nodes()[at];
  if (is_boundary(node))
    return std::string(node.kind == Node::Kind::begin ? "the beginning" : "the end") + " of launch " +
           number(node.launch + 1) + " of " + rank_name(node.chain);
  const WitnessEvent event = event_of(node);
  const Op& op = plan_.gpus[event.at.rank].threadblocks[event.at.threadblock].ops[event.at.op];
  return std::string(info(op.code).name) + " at " +
         (event.line.line ? event.line.file + ":" + number(event.line.line) : place_of(plan_, event.at));
}

WitnessEvent Slice::event_of(const Node& node) const {
  WitnessEvent event;
  event.launch = node.launch;
  if (is_boundary(node)) {
    event.who = Who::application;
    event.at = {node.chain, 0, 0};
    event.text = node.kind == Node::Kind::begin ? "the launch begins" : "the launch ends";
    return event;
  }
  const bool proxy = node.kind == Node::Kind::proxy_reads || node.kind == Node::Kind::proxy_writes;
  event.who = proxy ? Who::proxy : Who::block;
  event.at = history_.place(node);
  event.text = describe(plan_, event.at);
  ProofEvent of;
  of.at = event.at;
  of.id = node.id;
  event.line = line_of(plan_, of);
  return event;
}

size_t Slice::put(Entry entry) {
  const WitnessEvent& mine = entry.event;
  for (size_t at = 0; at < entries_.size(); ++at) {
    const WitnessEvent& other = entries_[at].event;
    const bool same_place = other.who == mine.who && other.launch == mine.launch && other.at == mine.at &&
                            entries_[at].turn == entry.turn;
    if (same_place && (mine.who != Who::application || entries_[at].node == entry.node)) return at;
  }
  entries_.push_back(std::move(entry));
  return entries_.size() - 1;
}

size_t Slice::put(uint32_t at) {
  const Node& node = history_.nodes()[at];
  return put({at, node.turn, event_of(node)});
}

void Slice::add(uint32_t node) { put(node); }

void Slice::add_culprit(uint32_t node, const ProofEvent& of, std::string mark) {
  Entry& entry = entries_[put(node)];
  entry.event.line = line_of(plan_, of);
  entry.event.part = WitnessEvent::Part::culprit;
  // One operation may be both culprits, when the race is between two of its threads.
  entry.event.mark += mark;
  if (entry.event.who == Who::application) entry.event.text += ", and the application uses its buffers";
}

void Slice::add_culprit(const ProofEvent& of, std::string mark) {
  Entry entry{History::none, 0, {}};
  entry.event.part = WitnessEvent::Part::culprit;
  entry.event.who = of.who;
  entry.event.at = of.at;
  entry.event.launch = of.launch;
  entry.event.mark = std::move(mark);
  if (of.who == Who::application) {
    entry.event.text = "the application uses its buffers";
  } else {
    entry.event.text = describe(plan_, of.at);
    entry.event.line = line_of(plan_, of);
  }
  entries_.push_back(std::move(entry));
}

size_t Slice::add_stuck(const ProofEvent& event, std::string mark) {
  add_culprit(event, std::move(mark));
  return entries_.size() - 1;
}

size_t Slice::add_missing(const ProofEvent& event) {
  const size_t entry = add_stuck(event, {});
  entries_[entry].event.part = WitnessEvent::Part::missing;
  return entry;
}

void Slice::add_path(const std::vector<uint32_t>& path) {
  std::vector<Stop> stops;
  bool publishes = true;
  for (size_t at = 0; at < path.size(); ++at) {
    if (at) {
      for (const Cause& cause : history_.before(path[at])) {
        if (cause.node == path[at - 1]) {
          publishes &= cause.kind != Cause::Kind::over;
          break;
        }
      }
    }
    if (!speaks(path[at]) && at + 1 != path.size()) continue;
    const size_t entry = put(path[at]);
    if (!stops.empty() && stops.back().entry == entry) continue;
    stops.push_back({entry, publishes});
    publishes = true;
  }
  paths_.push_back(std::move(stops));
}

void Slice::finish(Witness& witness) const {
  std::set<uint32_t> ranks;
  std::vector<size_t> kept;
  for (size_t at = 0; at < entries_.size(); ++at) {
    const uint32_t rank = entries_[at].event.at.rank;
    const bool room =
        kept.size() < Witness::most_events && (ranks.contains(rank) || ranks.size() < Witness::most_ranks);
    if (!room) {
      ++witness.left_out;
      continue;
    }
    ranks.insert(rank);
    kept.push_back(at);
  }
  // Events that did not happen have no place among those that did. If there are any, all events keep the
  // order in which they were added.
  const bool all_happened =
      std::all_of(kept.begin(), kept.end(), [&](size_t at) { return entries_[at].node != History::none; });
  if (all_happened) {
    std::sort(kept.begin(), kept.end(),
              [&](size_t one, size_t other) { return entries_[one].node < entries_[other].node; });
  }
  std::vector<uint32_t> position(entries_.size(), History::none);
  for (const size_t at : kept) {
    position[at] = uint32_t(witness.events.size());
    witness.events.push_back(entries_[at].event);
  }
  for (const std::vector<Stop>& path : paths_) {
    uint32_t from = History::none;
    bool publishes = true;
    for (const Stop& stop : path) {
      publishes &= stop.publishes;
      const uint32_t to = position[stop.entry];
      if (to == History::none) continue;
      if (from != History::none && from != to) witness.edges.push_back({from, to, publishes});
      from = to;
      publishes = true;
    }
  }
}

}  // namespace chorale::proof
