// Every post has its wait. The k-th channel of a type from rank A to rank B and the
// k-th from B to A are mates: A posts what B awaits. Inside a pipeline the number of
// turns depends on the message, so posts and waits are counted by (unit, chunks) and
// have to agree for each. Order and cycles are not looked at here.

#include <array>
#include <map>
#include <unordered_map>

#include "../resolve.hpp"
#include "../roles.hpp"
#include "chorale/compile.hpp"
#include "report.hpp"

namespace chorale {
namespace {

/// unit_bytes and chunks of the pipeline around an operation; zeros without one.
using Turns = std::pair<uint64_t, uint64_t>;

/// The operations that do one thing on one channel or semaphore, by how often they run.
using Uses = std::map<Turns, std::vector<OpPlace>>;

struct Channel {
  Uses posts, awaits;
};

struct Semaphore {
  Uses releases, acquires;
};

struct Rank {
  std::vector<uint32_t> peers[2];    // by type: memory, port
  std::vector<Channel> channels[2];  // the same
  std::vector<int64_t> mates[2];     // the peer's channel; -1 if it has none
  std::unordered_map<uint32_t, Semaphore> semaphores;
};

constexpr ChannelType types[] = {ChannelType::memory, ChannelType::port};

const std::vector<OpPlace>& places(const Uses& uses, const Turns& turns) {
  static const std::vector<OpPlace> none;
  const auto found = uses.find(turns);
  return found == uses.end() ? none : found->second;
}

std::string in_pipeline(const Turns& turns) {
  if (turns == Turns{}) return {};
  return " in pipelines of " + count(turns.second, "chunk") + " by " + count(turns.first, "byte");
}

std::vector<Rank> list_channels(const Plan& plan) {
  std::vector<Rank> ranks(plan.gpus.size());
  std::map<std::array<uint64_t, 4>, std::vector<uint32_t>> by_peer;  // type, rank, peer -> ids
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    for (size_t type = 0; type < 2; ++type) {
      std::vector<uint32_t>& peers = ranks[rank].peers[type];
      for (const ChannelRecord& record : plan.gpus[rank].channels) {
        if (record.type == types[type])
          peers.insert(peers.end(), record.connected_to.begin(), record.connected_to.end());
      }
      for (uint32_t id = 0; id < peers.size(); ++id) by_peer[{type, rank, peers[id], 0}].push_back(id);
      ranks[rank].channels[type].resize(peers.size());
      ranks[rank].mates[type].assign(peers.size(), -1);
    }
  }
  for (const auto& [key, ids] : by_peer) {
    const auto mates = by_peer.find({key[0], key[2], key[1], 0});
    if (mates == by_peer.end()) continue;
    for (size_t k = 0; k < std::min(ids.size(), mates->second.size()); ++k) {
      ranks[key[1]].mates[key[0]][ids[k]] = mates->second[k];
    }
  }
  return ranks;
}

void count_uses(const Plan& plan, std::vector<Rank>& ranks) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op* loop, OpPlace at) {
    const Shape& row = shape(op.code);
    const Turns turns = loop ? Turns{loop->unit_bytes, loop->chunks} : Turns{};
    Rank& rank = ranks[at.rank];
    const bool posts = row.has_any(post_roles), awaits = row.has_any(await_roles);
    if ((posts || awaits) && (op.via == types[0] || op.via == types[1])) {
      const size_t type = op.via == types[0] ? 0 : 1;
      for (const uint32_t local : block.op_ids(op)) {
        const int64_t id = channel_id(block, op.via, local);
        if (id < 0 || size_t(id) >= rank.channels[type].size()) continue;
        Channel& channel = rank.channels[type][size_t(id)];
        (posts ? channel.posts : channel.awaits)[turns].push_back(at);
      }
    }
    const bool releases = row.has(Role::Release);
    if (!releases && !row.has(Role::Acquire)) return;
    for (const uint32_t id : block.op_ids(op)) {
      (releases ? rank.semaphores[id].releases : rank.semaphores[id].acquires)[turns].push_back(at);
    }
  });
}

/// Compares what rank `rank` posts on a channel with what the mate at its peer awaits.
void compare_channel(const std::vector<Rank>& ranks, uint32_t rank, size_t type, uint32_t id,
                     Report& report) {
  const uint32_t peer = ranks[rank].peers[type][id];
  const int64_t mate = ranks[rank].mates[type][id];
  const Uses& posts = ranks[rank].channels[type][id].posts;
  static const Uses none;
  const Uses& awaits = mate < 0 ? none : ranks[peer].channels[type][size_t(mate)].awaits;
  const std::string type_name(channel_type_names[size_t(types[type])]);
  const std::string here =
      type_name + " channel " + number(id) + " of " + rank_name(rank) + " to " + rank_name(peer);
  const std::string there =
      mate < 0 ? std::string() : type_name + " channel " + number(uint64_t(mate)) + " of " + rank_name(peer);

  const auto compare = [&](const Turns& turns) {
    const std::vector<OpPlace>& posted = places(posts, turns);
    const std::vector<OpPlace>& awaited = places(awaits, turns);
    if (posted.size() == awaited.size()) return;
    const bool more_posts = posted.size() > awaited.size();
    // The first operation too many is the likeliest culprit.
    const OpPlace at = more_posts ? posted[awaited.size()] : awaited[posted.size()];
    const std::string text =
        mate < 0
            ? "this signal is never awaited: " + here + " is posted " + count(posted.size(), "time") +
                  in_pipeline(turns) + ", but " + rank_name(peer) + " has no channel that pairs with it"
            : std::string(more_posts ? "this signal is never awaited: " : "this wait is never answered: ") +
                  here + " is posted " + count(posted.size(), "time") + in_pipeline(turns) + ", but " +
                  there + " is awaited " + count(awaited.size(), "time") + in_pipeline(turns);
    Diagnostic& finding = report.add(at, text);
    const std::vector<OpPlace>& other = more_posts ? awaited : posted;
    if (!other.empty()) {
      finding.notes.push_back(
          {{}, other.back(), more_posts ? "the last wait is here" : "the last signal is here"});
    }
  };
  for (const auto& [turns, list] : posts) compare(turns);
  for (const auto& [turns, list] : awaits) {
    if (!posts.contains(turns)) compare(turns);
  }
}

/// Waits on a channel that has no mate: nobody can post it.
void report_mateless(const std::vector<Rank>& ranks, uint32_t rank, size_t type, uint32_t id,
                     Report& report) {
  const Rank& own = ranks[rank];
  if (own.mates[type][id] >= 0) return;
  for (const auto& [turns, list] : own.channels[type][id].awaits) {
    report.add(list[0], "this wait is never answered: " + rank_name(own.peers[type][id]) +
                            " has no channel that pairs with " +
                            std::string(channel_type_names[size_t(types[type])]) + " channel " + number(id) +
                            " of " + rank_name(rank) + ", which is awaited " + count(list.size(), "time") +
                            in_pipeline(turns));
  }
}

/// A launch must leave a semaphore as it found it, or the next launch differs.
void compare_semaphore(const Plan& plan, uint32_t rank, uint32_t id, const Semaphore& semaphore,
                       Report& report) {
  const int64_t initial = id < plan.gpus[rank].semaphores.size() ? plan.gpus[rank].semaphores[id] : 0;
  const auto compare = [&](const Turns& turns) {
    const std::vector<OpPlace>& released = places(semaphore.releases, turns);
    const std::vector<OpPlace>& acquired = places(semaphore.acquires, turns);
    if (released.size() == acquired.size()) return;
    const bool more = released.size() > acquired.size();
    const OpPlace at = more ? released[acquired.size()] : acquired[released.size()];
    Diagnostic& finding =
        report.add(at,
                   "semaphore " + number(id) + " of " + rank_name(rank) + " starts at " +
                       std::to_string(initial) + " and is released " + count(released.size(), "time") +
                       ", but acquired " + count(acquired.size(), "time") + in_pipeline(turns),
                   "release it as often as it is acquired, so that the next launch finds it as this one did");
    const std::vector<OpPlace>& other = more ? acquired : released;
    if (!other.empty())
      finding.notes.push_back(
          {{}, other.back(), more ? "the last acquire is here" : "the last release is here"});
  };
  for (const auto& [turns, list] : semaphore.releases) compare(turns);
  for (const auto& [turns, list] : semaphore.acquires) {
    if (!semaphore.releases.contains(turns)) compare(turns);
  }
}

}  // namespace

void pass::pairing(const Plan& plan, Diagnostics& out) {
  Report report("pairing", out);
  std::vector<Rank> ranks = list_channels(plan);
  count_uses(plan, ranks);
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    for (size_t type = 0; type < 2; ++type) {
      for (uint32_t id = 0; id < ranks[rank].peers[type].size(); ++id) {
        compare_channel(ranks, rank, type, id, report);
        report_mateless(ranks, rank, type, id, report);
      }
    }
    const std::map<uint32_t, Semaphore> sorted(ranks[rank].semaphores.begin(), ranks[rank].semaphores.end());
    for (const auto& [id, semaphore] : sorted) compare_semaphore(plan, rank, id, semaphore, report);
  }
}

}  // namespace chorale
