// This file explains two accesses that nothing orders. It shows the last event that comes before both, and
// the paths from it to each. So the reader sees how much the second access knows of the first.
//
// If a relaxed signal or a packet orders the accesses, but does not make the data visible, it shows the path
// between them instead.

#include "compiler/plan/report.hpp"
#include "explain.hpp"
#include "paths.hpp"
#include "remedies.hpp"

namespace chorale::proof {
namespace {

using Who = ProofEvent::Who;

bool is_boundary(const Node& node) { return node.kind == Node::Kind::begin || node.kind == Node::Kind::end; }

/// Returns whether the same block did both, or handed both to the same proxy. Then one of them came before
/// the other.
bool same_agent(const Node& one, const Node& other) {
  const auto proxy = [](const Node& node) {
    return node.kind == Node::Kind::proxy_reads || node.kind == Node::Kind::proxy_writes;
  };
  return is_boundary(one) == is_boundary(other) && one.chain == other.chain && proxy(one) == proxy(other);
}

std::string access_of(const ProofEvent& event) {
  return std::string(event.writes ? "overwrites " : "reads ") + (event.packets ? "packets of " : "") +
         std::string(buffer_names[size_t(event.buffer)]) + "[" + number(event.begin) + ":" +
         number(event.end) + "] of " + rank_name(event.buffer_rank);
}

class Race {
 public:
  Race(const History& history, const Finding& finding, Slice& slice, Witness& witness)
      : history_(history),
        nodes_(history.nodes()),
        finding_(finding),
        slice_(slice),
        witness_(witness),
        first_(history.find(finding.events[0])),
        second_(history.find(finding.events[1])) {}

  void explain() {
    if (first_ == History::none || second_ == History::none) {
      slice_.add_culprit(finding_.events[0], "A");
      slice_.add_culprit(finding_.events[1], "B");
      return;
    }
    slice_.add_culprit(first_, finding_.events[0], "A");
    slice_.add_culprit(second_, finding_.events[1], "B");
    witness_.because.push_back("A " + access_of(finding_.events[0]) + ", B " + access_of(finding_.events[1]));
    // A read must have ended before its data is overwritten. A write must be visible.
    const bool published = finding_.events[0].writes;
    RemedyList found;
    if (first_ != second_) found = find_remedies(history_, finding_);
    witness_.remedies = std::move(found.remedies);
    witness_.wrong_order = std::move(found.wrong_order);
    const Past all(history_, second_, false);
    if (published && all.has(first_)) return show_relaxed(all);
    if (ends_before(finding_.events[0], finding_.events[1]) || found.swapped) {
      show_late();
    } else {
      show_early(published);
    }
    if (!found.misplaced.empty()) witness_.because.push_back(std::move(found.misplaced));
  }

 private:
  void show_early(bool published) {
    const Past of_second(history_, second_, published), of_first(history_, first_, published);
    show_known(of_second, first_, "B");
    show_join(of_first, of_second);
    witness_.because.push_back(std::string("missing: any path from A to B") +
                               (published ? " that publishes what A wrote" : ""));
  }

  /// Shows two accesses that are ordered although their data is not.
  void show_relaxed(const Past& of_second) {
    slice_.add_path(of_second.path_from(first_));
    witness_.because.push_back(
        "A has ended when B begins, but the path from A to B has events whose writes the next one may not "
        "see: a "
        "path that publishes data is missing");
  }

  /// Shows two accesses in the wrong order: the second one should come first, because the launch ends without
  /// waiting for it, or because its data is already overwritten.
  void show_late() {
    const bool published = finding_.events[1].writes;
    const Past of_first(history_, first_, published), of_second(history_, second_, published);
    show_known(of_first, second_, "A");
    show_join(of_first, of_second);
    witness_.because.push_back(std::string("missing: any path from B to A") +
                               (published ? " that publishes what B wrote" : ""));
  }

  /// Says how far one access knows the progress of the other one's side.
  void show_known(const Past& past, uint32_t other, const std::string& one) {
    if (same_agent(nodes_[first_], nodes_[second_])) return;
    uint32_t known = History::none;
    for (uint32_t at = 0; at < nodes_.size(); ++at) {
      if (past.has(at) && same_agent(nodes_[at], nodes_[other]) && slice_.speaks(at) &&
          nodes_[at].kind != Node::Kind::begin)
        known = at;
    }
    witness_.because.push_back(one + " knows " +
                               (known == History::none
                                    ? "nothing of the progress of " + slice_.who(other)
                                    : "the progress of " + slice_.who(other) + " only up to " +
                                          slice_.name(known) + launch_of(known)));
  }

  std::string launch_of(uint32_t node) const {
    if (is_boundary(nodes_[node]) || finding_.setting.launches < 2) return {};
    return " of launch " + number(nodes_[node].launch + 1);
  }

  /// Shows the last event that comes before both. If possible, it is on the side of the first one.
  void show_join(const Past& of_first, const Past& of_second) {
    uint32_t join = History::none, on_side = History::none;
    for (uint32_t at = 0; at < nodes_.size(); ++at) {
      if (!of_first.has(at) || !of_second.has(at)) continue;
      join = at;
      if (nodes_[at].kind == Node::Kind::control && same_agent(nodes_[at], nodes_[first_])) on_side = at;
    }
    if (on_side != History::none) join = on_side;
    if (join == History::none) return;
    if (join == first_ || join == second_) return;
    slice_.add_path(of_second.path_from(join));
    slice_.add_path(of_first.path_from(join));
  }

  const History& history_;
  const std::vector<Node>& nodes_;
  const Finding& finding_;
  Slice& slice_;
  Witness& witness_;
  const uint32_t first_, second_;
};

}  // namespace

void explain_race(const History& history, const Finding& finding, Slice& slice, Witness& witness) {
  Race(history, finding, slice, witness).explain();
}

}  // namespace chorale::proof
