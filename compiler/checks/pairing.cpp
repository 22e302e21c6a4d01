// This check requires a wait for every post. The k-th channel of a type from rank A to rank B and the k-th
// one from B to A are mates: B awaits what A posts. The number of turns of a pipeline depends on the message,
// so posts and waits are counted by (unit, chunks) and must be equal for each pair. The check looks neither
// at order nor at cycles.

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "chorale/checks.hpp"
#include "compiler/plan/channel_ends.hpp"
#include "compiler/plan/lines.hpp"
#include "compiler/plan/report.hpp"
#include "compiler/plan/resolve.hpp"
#include "compiler/plan/roles.hpp"

namespace chorale {
namespace {

/// Holds unit_bytes and chunks of the pipeline around an operation; zeros without one.
using Turns = std::pair<uint64_t, uint64_t>;

/// Says what is counted at a rank: the channels of one of signalled_types, or the semaphores.
using Kind = size_t;
constexpr Kind semaphore = std::size(signalled_types), kinds = semaphore + 1;

/// Counts how often a channel is posted and awaited, or a semaphore released and acquired.
struct Tally {
  uint32_t ups = 0, downs = 0;
};

/// Holds tallies by id and turns. A plan has one count per channel, so tallies outside pipelines have no map.
class Tallies {
 public:
  Tally& at(uint32_t id, const Turns& turns) {
    if (turns != Turns{}) return in_pipelines_[{id, turns}];
    if (id >= outside_.size()) outside_.resize(size_t(id) + 1);
    return outside_[id];
  }
  Tally get(uint32_t id, const Turns& turns) const {
    if (turns == Turns{}) return id < outside_.size() ? outside_[id] : Tally{};
    const auto found = in_pipelines_.find({id, turns});
    return found == in_pipelines_.end() ? Tally{} : found->second;
  }
  /// Calls visit(turns, tally) for each tally of `id` that is not zero, by turns.
  template <class Visit>
  void each(uint32_t id, Visit&& visit) const {
    if (const Tally found = get(id, {}); found.ups || found.downs) visit(Turns{}, found);
    for (auto next = in_pipelines_.lower_bound({id, {}});
         next != in_pipelines_.end() && next->first.first == id; ++next) {
      visit(next->first.second, next->second);
    }
  }
  /// Returns the highest id plus one.
  size_t ids() const {
    const size_t inside = in_pipelines_.empty() ? 0 : size_t(in_pipelines_.rbegin()->first.first) + 1;
    return std::max(outside_.size(), inside);
  }

 private:
  std::vector<Tally> outside_;
  std::map<std::pair<uint32_t, Turns>, Tally> in_pipelines_;
};

struct Rank : ChannelEnds {
  Tallies tallies[kinds];
};

std::string in_pipeline(const Turns& turns) {
  if (turns == Turns{}) return {};
  return " in pipelines of " + count(turns.second, "chunk") + " by " + count(turns.first, "byte");
}

std::vector<Rank> list_channels(const Plan& plan) {
  std::vector<Rank> ranks;
  for (ChannelEnds& ends : list_channel_ends(plan)) ranks.push_back({std::move(ends), {}});
  return ranks;
}

/// Names an id of an operation.
struct Use {
  OpPlace at;
  uint32_t position;  ///< in the ids of the operation
};

/// Calls visit(kind, id, up, turns, at) for each post, wait, release and acquire of a rank's operations. `at`
/// is a Use.
template <class Visit>
void each_use(const Plan& plan, uint32_t rank, Visit&& visit) {
  constexpr uint32_t semaphore_roles = Shape::bit(Role::Release) | Shape::bit(Role::Acquire);
  for_each_op(
      plan, rank, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op* loop, OpPlace at) {
        const Shape& row = shape(op.code);
        if (!row.has_any(post_roles | await_roles | semaphore_roles)) return;
        const Turns turns = loop ? Turns{loop->unit_bytes, loop->chunks} : Turns{};
        if (row.has_any(semaphore_roles)) {
          uint32_t position = 0;
          for (const uint32_t id : block.op_ids(op))
            visit(semaphore, id, row.has(Role::Release), turns, Use{at, position++});
        } else if (has_signals(op.via)) {
          const ChannelRefs* refs = block.channels_of(op.via);
          uint32_t position = 0;
          for (const uint32_t local : block.op_ids(op)) {
            const Use use{at, position++};
            if (refs && local < refs->ids.size())
              visit(signalled_position(op.via), refs->ids[local], row.has_any(post_roles), turns, use);
          }
        }
      });
}

void count_uses(const Plan& plan, std::vector<Rank>& ranks) {
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    each_use(plan, rank, [&](Kind kind, uint32_t id, bool up, const Turns& turns, const Use&) {
      if (kind != semaphore && id >= ranks[rank].peers[kind].size()) return;
      Tally& tally = ranks[rank].tallies[kind].at(id, turns);
      ++(up ? tally.ups : tally.downs);
    });
  }
}

/// Returns what one count is made of, in order. It runs only after something was found.
std::vector<Use> uses_of(const Plan& plan, uint32_t rank, Kind kind, uint32_t id, bool up,
                         const Turns& turns) {
  std::vector<Use> found;
  each_use(plan, rank,
           [&](Kind other, uint32_t used, bool other_up, const Turns& other_turns, const Use& use) {
             if (other == kind && used == id && other_up == up && other_turns == turns) found.push_back(use);
           });
  return found;
}

SourceLine line_of(const Plan& plan, const Use& use) {
  const Op& op = plan.gpus[use.at.rank].threadblocks[use.at.threadblock].ops[use.at.op];
  return plan.first_at(op) <= plan.source.size() ? line_of_entry(plan, op, OpList::ids, use.position)
                                                 : SourceLine{};
}

constexpr size_t most_lines = 8;

/// Lists the lines of uses: "29, 31 (2 times)". A line of a file other than `file` has the name of its file.
/// Returns an empty text if a line is unknown.
std::string list_lines(const Plan& plan, const std::vector<Use>& uses, const std::string& file) {
  std::string text;
  size_t told = 0;
  for (size_t at = 0; at < uses.size();) {
    const SourceLine line = line_of(plan, uses[at]);
    if (!line.line) return {};
    size_t end = at + 1;
    while (end < uses.size() && line_of(plan, uses[end]) == line) ++end;
    if (++told > most_lines) return text + " and " + number(uses.size() - at) + " more";
    text += (text.empty() ? "" : ", ") + (line.file == file ? "" : line.file + ":") + number(line.line);
    if (end - at > 1) text += " (" + count(end - at, "time") + ")";
    at = end;
  }
  return text;
}

/// Names the one of several posts or waits that most likely lacks its counterpart.
struct Lone {
  size_t position;  ///< among the posts, or among the waits
  Use beside;       ///< the other rank's own operation on this channel where the counterpart is missing
  std::optional<Use> before;  ///< that rank's next such operation
};

/// Compares how a rank posts and awaits on its end of a channel. Ranks mostly do the same, and then a wait
/// follows each post. Returns nothing if this one does something else.
///
/// \param up  true: the other end posts too often, so a wait is missing here; false: a post is missing here
/// \param more, fewer  how often the other end does so, and how often this end answers it
std::optional<Lone> find_lone(const Plan& plan, uint32_t rank, Kind kind, uint32_t id, bool up,
                              const Turns& turns, size_t more, size_t fewer) {
  std::vector<std::pair<Use, bool>> list;
  each_use(plan, rank, [&](Kind other, uint32_t used, bool ups, const Turns& of, const Use& use) {
    if (other == kind && used == id && of == turns) list.emplace_back(use, ups);
  });
  if (list.empty() || std::ranges::any_of(list, [&](const auto& of) {
        return of.first.at.threadblock != list[0].first.at.threadblock;
      }))
    return {};
  // A missing post is looked for from the end, because it comes before the wait.
  if (!up) std::ranges::reverse(list);
  size_t own = 0;
  std::vector<std::pair<size_t, size_t>>
      lone;  // number among those like the surplus ones, and position in list
  for (size_t at = 0; at < list.size(); ++at) {
    if (list[at].second != up) continue;
    if (at + 1 == list.size() || list[at + 1].second == up) lone.emplace_back(own, at);
    ++own;
  }
  if (own != more || lone.size() != more - fewer) return {};
  // In the list the first of them comes first, also if it is reversed.
  const auto [position, at] = up ? lone.front() : lone.back();
  const bool has_next = at + 1 < list.size();
  return Lone{up ? position : own - 1 - position, list[at].first,
              has_next ? std::optional(list[at + 1].first) : std::nullopt};
}

/// Adds a note at the last of the uses of which there are fewer. If there are several uses in all, it lists
/// the lines of all of them.
/// \param up, down  the words for both, such as "signal" and "wait"
void note_uses(const Plan& plan, const std::vector<Use>& ups, const std::vector<Use>& downs,
               const std::string& up, const std::string& down, Diagnostic& finding) {
  const bool more_ups = ups.size() > downs.size();
  const std::vector<Use>&fewer = more_ups ? downs : ups, &more = more_ups ? ups : downs;
  if (fewer.empty() && more.size() < 2) return;
  const Use& last = fewer.empty() ? more.back() : fewer.back();
  const SourceLine line = line_of(plan, last);
  std::string text =
      (fewer.size() == 1 ? "the " : "the last ") + (fewer.empty() == more_ups ? up : down) + " is here";
  const std::string up_lines = list_lines(plan, ups, line.file),
                    down_lines = list_lines(plan, downs, line.file);
  const bool known = ups.empty() == up_lines.empty() && downs.empty() == down_lines.empty();
  if (known && ups.size() + downs.size() > 2) {
    const auto lines = [](const std::string& word, const std::string& list) {
      return list.empty() ? "no " + word : word + "s at " + list;
    };
    text += ": " + lines(up, up_lines) + "; " + lines(down, down_lines);
  }
  const Op& op = plan.gpus[last.at.rank].threadblocks[last.at.threadblock].ops[last.at.op];
  finding.notes.push_back({plan.calls_of(op).empty() ? SourceLine{} : line, last.at, std::move(text)});
}

/// Adds a note at the operation of a rank beside which the counterpart is missing.
/// \param up  whether the counterpart is a wait
void note_lone_use(const Plan& plan, uint32_t rank, const Lone& lone, bool up, Diagnostic& finding) {
  const Op& op =
      plan.gpus[lone.beside.at.rank].threadblocks[lone.beside.at.threadblock].ops[lone.beside.at.op];
  const SourceLine line = line_of(plan, lone.beside);
  std::string text = rank_name(rank) + (up ? " does not wait on this channel after its signal here"
                                           : " does not signal on this channel before its wait here");
  if (lone.before) {
    const SourceLine other = line_of(plan, *lone.before);
    if (other.line)
      text += std::string(", and ") + (up ? "before" : "after") + " its " + (up ? "signal" : "wait") +
              " at " + (other.file == line.file ? "line " : other.file + ":") + number(other.line);
  }
  finding.notes.push_back({plan.calls_of(op).empty() ? SourceLine{} : line, lone.beside.at, std::move(text)});
}

/// Gives a finding the line of the call that it is about, if the compiler joined several calls.
void name_line(const Plan& plan, const Use& use, Diagnostic& finding) {
  const Op& op = plan.gpus[use.at.rank].threadblocks[use.at.threadblock].ops[use.at.op];
  if (!plan.calls_of(op).empty()) finding.line = line_of(plan, use);
}

/// Returns the line where a channel is made; its number is 0 if unknown.
SourceLine made_at(const Plan& plan, uint32_t rank, Kind kind, uint32_t id) {
  for (const ChannelRecord& record : plan.gpus[rank].channels) {
    if (record.type != signalled_types[kind]) continue;
    if (id < record.connected_to.size()) {
      const uint32_t at = id < record.at.size() ? record.at[id] : 0;
      return at && at <= plan.channel_source.size() ? plan.channel_source[at - 1] : SourceLine{};
    }
    id -= uint32_t(record.connected_to.size());
  }
  return {};
}

/// Adds the line where a channel is made, unless the finding or one of its notes is at that line.
void note_made(const Plan& plan, uint32_t rank, Kind kind, uint32_t id, const std::string& what,
               Diagnostic& finding) {
  const SourceLine made = made_at(plan, rank, kind, id);
  const bool told = std::any_of(finding.notes.begin(), finding.notes.end(), [&](const Note& note) {
    return author_line(plan, note.line, note.at) == made;
  });
  if (made.line && !told && made != author_line(plan, finding.line, finding.at))
    finding.notes.push_back({made, std::nullopt, what + " is made here"});
}

bool has_lone_channel(const Rank& rank, Kind kind) {
  const std::vector<uint32_t>& mates = rank.mates[kind];
  return std::find(mates.begin(), mates.end(), ChannelEnds::none) != mates.end();
}

/// Adds the lines where a channel and its mate are made, if one of their ranks has a channel without a mate.
/// Then a channel leads to a wrong rank, and that may be this one.
void note_pair_made(const Plan& plan, const std::vector<Rank>& ranks, uint32_t rank, Kind kind, uint32_t id,
                    Diagnostic& finding) {
  const uint32_t peer = ranks[rank].peers[kind][id], mate = ranks[rank].mates[kind][id];
  if (!has_lone_channel(ranks[rank], kind) && !has_lone_channel(ranks[peer], kind)) return;
  note_made(plan, rank, kind, id, "the channel to " + rank_name(peer), finding);
  note_made(plan, peer, kind, mate, "its partner", finding);
}

/// Says what to change on a channel of `rank` that is posted and awaited differently often. The first help of
/// a plan also says how channels are paired, if there are several between two ranks.
class Help {
 public:
  explicit Help(const std::vector<Rank>& ranks) : ranks_(ranks) {}

  /// \param posts, awaits  the counts of the channel, which differ, and of its mate at the peer
  std::string operator()(uint32_t rank, Kind kind, uint32_t id, uint64_t posts, uint64_t awaits) {
    const uint32_t peer = ranks_[rank].peers[kind][id], mate = ranks_[rank].mates[kind][id];
    const std::string type(channel_type_names[size_t(signalled_types[kind])]);
    const uint64_t missing = posts > awaits ? posts - awaits : awaits - posts;
    const std::string more = count(missing, "more time"), less = count(missing, "time") + " less";
    const std::string poster = rank_name(rank), waiter = rank_name(peer);
    const std::string at_poster = " on its " + type + " channel " + number(id);
    const std::string at_waiter = " on its " + type + " channel " + number(mate);
    std::string text = posts > awaits ? waiter + " must wait " + more + at_waiter + ", or " + poster +
                                            " must signal " + less + at_poster
                                      : poster + " must signal " + more + at_poster + ", or " + waiter +
                                            " must wait " + less + at_waiter;
    return text + pairs(rank, kind, id);
  }

  /// Writes the help for a channel of `rank` without a mate.
  std::string without_mate(uint32_t rank, Kind kind, uint32_t id, bool is_posted, uint64_t times) {
    const std::string peer = rank_name(ranks_[rank].peers[kind][id]);
    const std::string type(channel_type_names[size_t(signalled_types[kind])]);
    const auto lone = lone_channel_to(rank, kind, ranks_[rank].peers[kind][id]);
    return (!lone ? "make a "
                  : rank_name(lone->first) + " has a " + type + " channel to " + rank_name(rank) +
                        " without a partner: is one of them meant to lead to another rank? if not, "
                        "make a ") +
           type + " channel from " + peer + " to " + rank_name(rank) + ", on which " + peer +
           (is_posted ? " waits " : " signals ") + count(times, "time") + pairs(rank, kind, id);
  }

  /// Returns the first rank but `peer` that has a channel without a mate to `rank`, and that channel; nothing
  /// if there is none.
  std::optional<std::pair<uint32_t, uint32_t>> lone_channel_to(uint32_t rank, Kind kind,
                                                               uint32_t peer) const {
    for (uint32_t other = 0; other < ranks_.size(); ++other) {
      const std::vector<uint32_t>& peers = ranks_[other].peers[kind];
      for (uint32_t id = 0; id < peers.size() && other != peer; ++id) {
        if (peers[id] == rank && ranks_[other].mates[kind][id] == ChannelEnds::none)
          return std::pair(other, id);
      }
    }
    return {};
  }

 private:
  std::string pairs(uint32_t rank, Kind kind, uint32_t id) {
    if (told_) return {};
    const std::string how = how_channels_pair(ranks_[rank], kind, rank, id);
    told_ = !how.empty();
    return told_ ? "; " + how : how;
  }

  const std::vector<Rank>& ranks_;
  bool told_ = false;
};

/// Adds the lines where a channel without a mate is made, and the one that may be meant to pair with it.
void note_lone(const Plan& plan, const std::vector<Rank>& ranks, uint32_t rank, Kind kind, uint32_t id,
               const Help& help, Diagnostic& finding) {
  note_made(plan, rank, kind, id, "the channel", finding);
  if (const auto lone = help.lone_channel_to(rank, kind, ranks[rank].peers[kind][id]))
    note_made(plan, lone->first, kind, lone->second,
              "the channel of " + rank_name(lone->first) + " to " + rank_name(rank), finding);
}

/// Compares the posts of rank `rank` on a channel with the waits on the mate at its peer.
void compare_channel(const Plan& plan, const std::vector<Rank>& ranks, uint32_t rank, Kind kind, uint32_t id,
                     Report& report, Help& help) {
  const uint32_t peer = ranks[rank].peers[kind][id], mate = ranks[rank].mates[kind][id];
  const Tallies& own = ranks[rank].tallies[kind];
  static const Tallies nothing;
  const Tallies& other = mate == ChannelEnds::none ? nothing : ranks[peer].tallies[kind];

  const auto compare = [&](const Turns& turns) {
    const uint64_t posts = own.get(id, turns).ups;
    const uint64_t awaits = mate == ChannelEnds::none ? 0 : other.get(mate, turns).downs;
    if (posts == awaits) return;
    const std::string type_name(channel_type_names[size_t(signalled_types[kind])]);
    const std::string here =
        type_name + " channel " + number(id) + " of " + rank_name(rank) + " to " + rank_name(peer);
    const std::vector<Use> posted = uses_of(plan, rank, kind, id, true, turns);
    const std::vector<Use> awaited =
        mate == ChannelEnds::none ? std::vector<Use>() : uses_of(plan, peer, kind, mate, false, turns);
    const bool more_posts = posts > awaits;
    const std::string counted = here + " is posted " + count(posts, "time") + in_pipeline(turns) + ", but ";
    std::optional<Lone> lone;
    if (posts && awaits)
      lone = more_posts ? find_lone(plan, peer, kind, mate, true, turns, posts, awaits)
                        : find_lone(plan, rank, kind, id, false, turns, awaits, posts);
    const size_t first = lone ? lone->position : more_posts ? awaits : posts;
    const Use& surplus = more_posts ? posted[first] : awaited[first];
    std::string text = more_posts ? "this signal is never awaited: " : "this wait is never answered: ";
    if (lone)
      text =
          more_posts ? "this signal seems to be never awaited: " : "this wait seems to be never answered: ";
    else if (posts && awaits)
      text = count(posts, "signal") + " meet" + (posts == 1 ? "s " : " ") + count(awaits, "wait") + ": ";
    if (mate == ChannelEnds::none) {
      text += counted + rank_name(peer) + " has no channel that pairs with it";
    } else {
      text += counted + type_name + " channel " + number(mate) + " of " + rank_name(peer) + " is awaited " +
              count(awaits, "time") + in_pipeline(turns);
    }
    Diagnostic& finding =
        report.add(surplus.at, text,
                   mate == ChannelEnds::none ? help.without_mate(rank, kind, id, true, posts)
                                             : help(rank, kind, id, posts, awaits));
    name_line(plan, surplus, finding);
    if (mate == ChannelEnds::none) {
      note_lone(plan, ranks, rank, kind, id, help, finding);
    } else {
      if (lone) note_lone_use(plan, more_posts ? peer : rank, *lone, more_posts, finding);
      note_uses(plan, posted, awaited, "signal", "wait", finding);
      note_pair_made(plan, ranks, rank, kind, id, finding);
    }
  };
  own.each(id, [&](const Turns& turns, const Tally& tally) {
    if (tally.ups) compare(turns);
  });
  if (mate == ChannelEnds::none) return;
  other.each(mate, [&](const Turns& turns, const Tally& tally) {
    if (tally.downs && !own.get(id, turns).ups) compare(turns);
  });
}

/// Reports waits on a channel without a mate, which nobody can post.
void report_mateless(const Plan& plan, const std::vector<Rank>& ranks, uint32_t rank, Kind kind, uint32_t id,
                     Report& report, Help& help) {
  const Rank& own = ranks[rank];
  if (own.mates[kind][id] != ChannelEnds::none) return;
  own.tallies[kind].each(id, [&](const Turns& turns, const Tally& tally) {
    if (!tally.downs) return;
    const Use first = uses_of(plan, rank, kind, id, false, turns)[0];
    Diagnostic& finding =
        report.add(first.at,
                   "this wait is never answered: " + rank_name(own.peers[kind][id]) +
                       " has no channel that pairs with " +
                       std::string(channel_type_names[size_t(signalled_types[kind])]) + " channel " +
                       number(id) + " of " + rank_name(rank) + ", which is awaited " +
                       count(tally.downs, "time") + in_pipeline(turns),
                   help.without_mate(rank, kind, id, false, tally.downs));
    name_line(plan, first, finding);
    note_lone(plan, ranks, rank, kind, id, help, finding);
  });
}

/// Checks that a launch leaves a semaphore at its initial value. Otherwise the next launch would differ.
void compare_semaphore(const Plan& plan, uint32_t rank, uint32_t id, const Tallies& tallies, Report& report) {
  const int64_t initial = id < plan.gpus[rank].semaphores.size() ? plan.gpus[rank].semaphores[id] : 0;
  tallies.each(id, [&](const Turns& turns, const Tally& tally) {
    if (tally.ups == tally.downs) return;
    const std::vector<Use> released = uses_of(plan, rank, semaphore, id, true, turns);
    const std::vector<Use> acquired = uses_of(plan, rank, semaphore, id, false, turns);
    const Use& surplus = tally.ups > tally.downs ? released[tally.downs] : acquired[tally.ups];
    Diagnostic& finding =
        report.add(surplus.at,
                   "semaphore " + number(id) + " of " + rank_name(rank) + " starts at " +
                       std::to_string(initial) + " and is released " + count(tally.ups, "time") +
                       ", but acquired " + count(tally.downs, "time") + in_pipeline(turns),
                   "release it as often as it is acquired, so that the next launch finds it as this one did");
    name_line(plan, surplus, finding);
    note_uses(plan, released, acquired, "release", "acquire", finding);
  });
}

}  // namespace

void pass::pairing(const Plan& plan, Diagnostics& out) {
  Report report("pairing", out);
  std::vector<Rank> ranks = list_channels(plan);
  count_uses(plan, ranks);
  Help help(ranks);
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    for (Kind kind = 0; kind < semaphore; ++kind) {
      for (uint32_t id = 0; id < ranks[rank].peers[kind].size(); ++id) {
        compare_channel(plan, ranks, rank, kind, id, report, help);
        report_mateless(plan, ranks, rank, kind, id, report, help);
      }
    }
    const Tallies& semaphores = ranks[rank].tallies[semaphore];
    for (uint32_t id = 0; id < semaphores.ids(); ++id) compare_semaphore(plan, rank, id, semaphores, report);
  }
}

}  // namespace chorale
