// This file turns operations into items. A put and the signal after it are a message, which the wait for this
// signal receives. Signals without data are left out, because the connections of MSCCL have their own.
// Whether the algorithm is right without them is for the proofs to say.

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "compiler/plan/channel_ends.hpp"
#include "compiler/plan/report.hpp"
#include "compiler/plan/resolve.hpp"
#include "export.hpp"

namespace chorale::msccl {
namespace {

constexpr const char* check_name = "export";

/// Says what a put moves: chunks here, and chunks at the peer.
struct PutData {
  Region source, destination;
};

/// Names a channel of a rank.
struct ChannelKey {
  size_t type = 0;  // in signalled_types
  uint32_t id = 0;
  auto operator<=>(const ChannelKey&) const = default;
};

/// Holds what the posts and awaits of one channel of a rank are for.
struct ChannelUse {
  struct Post {
    uint32_t block = 0, op = 0;
    std::vector<PutData> messages;
  };
  struct Await {
    uint32_t block = 0, op = 0;
    size_t item = 0;  // items before it
  };
  std::vector<Post> posts;
  std::vector<Await> awaits;
};

/// Says why an operation has no step, or returns "".
std::string without_step(const Shape& row) {
  if (row.has_any(packet_roles)) return "MSCCL's steps have no packets";
  if (row.has_any(switched_roles)) return "MSCCL's steps have no switch channels";
  if (row.has(Role::RemoteRead)) return "MSCCL's steps read no memory of a peer";
  return row.has(Role::Loop) ? "MSCCL's steps have no pipelines" : "";
}

std::string help_for(const Shape& row) {
  if (row.has(Role::RemoteRead)) return "let the peer put the chunks";
  if (row.has_any(packet_roles)) return "use put, signal and wait in place of packets";
  return "";
}

class Lister {
 public:
  Lister(const Plan& plan, Diagnostics& out)
      : plan_(plan), report_(check_name, out), ends_(list_channel_ends(plan)), use_(plan.gpus.size()) {}

  std::vector<RankItems> run() {
    ranks_.resize(plan_.gpus.size());
    for (rank_ = 0; rank_ < plan_.gpus.size(); ++rank_) rank();
    for (rank_ = 0; rank_ < plan_.gpus.size(); ++rank_) receive();
    return std::move(ranks_);
  }

 private:
  struct Pending {
    PutData data;
    uint32_t op = 0;
    size_t item = 0;
  };

  const Gpu& gpu() const { return plan_.gpus[rank_]; }
  OpPlace here() const { return {rank_, block_, op_}; }
  /// Reports an operation. A call that many ranks make is reported once.
  void refuse(std::string text, std::string help = {}) {
    const uint32_t at = gpu().threadblocks[block_].ops[op_].at;
    if (at == 0 || refused_.insert({at, text}).second) report_.add(here(), std::move(text), std::move(help));
  }

  void rank() {
    ranks_[rank_].blocks.resize(gpu().threadblocks.size());
    semaphores_.assign(gpu().semaphores.size(), {});
    arrivals_.clear();
    turns_.clear();
    members_.clear();
    for_each_op(plan_, rank_, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
      if (op.code != Opcode::barrier) return;
      std::vector<uint32_t>& members = members_[block.op_ids(op)[0]];
      if (members.empty() || members.back() != at.threadblock) members.push_back(at.threadblock);
    });
    for (block_ = 0; block_ < gpu().threadblocks.size(); ++block_) {
      pending_.clear();
      ranks_[rank_].blocks[block_].origin = block_;
      const ThreadBlock& block = gpu().threadblocks[block_];
      for (op_ = 0; op_ < block.ops.size(); ++op_) op(block, block.ops[op_]);
      for (const auto& [peer, puts] : pending_) {
        op_ = puts.front().op;
        refuse("no signal follows this, so MSCCL has no step that receives it");
      }
    }
    semaphores();
  }

  void op(const ThreadBlock& block, const Op& op) {
    const Shape& row = shape(op.code);
    if (std::string why = without_step(row); !why.empty()) return refuse(std::move(why), help_for(row));
    if (op.group_size) return refuse("MSCCL's thread blocks do not share an operation");
    bool encoded = false;
    for_each_operand(block, op, [&](const Field&, const Operand& operand) { encoded |= operand.codec != 0; });
    if (encoded) return refuse("MSCCL's steps have no encoded chunks");
    if (row.has(Role::Reduce) && op.reduce_op != ReduceOp::sum) {
      return refuse("this combines by " + std::string(reduce_op_names[size_t(op.reduce_op)]) +
                    ", and a file of MSCCL names no operator but the caller's");
    }
    if (op.code == Opcode::copy)
      add(Item::Kind::copy, place(block.sources(op)[0]), {}, place(block.dests(op)[0]));
    if (row.has(Role::Reduce)) reduce(block, op);
    if (row.has(Role::RemoteWrite)) puts(block, op);
    const bool each = row.has(Role::RemoteWrite);  // a signal after each put
    for (const uint32_t id : block.op_ids(op)) {
      if (row.has(Role::Acquire) || row.has(Role::Release)) {
        semaphores_[id].push_back({row.has(Role::Release), block_, op_, item(row.has(Role::Release))});
      } else if (row.has(Role::Arrive)) {
        arrive(id);
      } else if (row.has_any(post_roles) && !each) {
        post(channel(block, op, id), row.has(Role::Post));
      } else if (row.has_any(await_roles)) {
        ChannelUse& of = use_[rank_][channel(block, op, id)];
        of.awaits.push_back({block_, op_, items().size()});
      }
    }
  }

  std::vector<Item>& items() { return ranks_[rank_].blocks[block_].items; }

  static Region place(const Operand& operand) {
    return {BufferKind(operand.ref), operand.index, operand.size};
  }

  Item& add(Item::Kind kind, Region source, Region other, Region destination) {
    Item item;
    item.kind = kind;
    item.source = source;
    item.other = other;
    item.destination = destination;
    item.op = op_;
    return items().emplace_back(item);
  }
  /// Adds an item for an event, which is set later, and returns its position.
  size_t item(bool release) {
    add(release ? Item::Kind::release : Item::Kind::acquire, {}, {}, {});
    return items().size() - 1;
  }

  void reduce(const ThreadBlock& block, const Op& op) {
    const Region to = place(block.dests(op)[0]);
    Region sum = place(block.sources(op)[0]);
    for (const Operand& other : block.sources(op).subspan(1)) {
      add(Item::Kind::reduce, sum, place(other), to);
      sum = to;
    }
  }

  void puts(const ThreadBlock& block, const Op& op) {
    const bool sum = shape(op.code).has(Role::Reduce);
    const std::span<const Operand> to = block.dests(op).subspan(sum ? 1 : 0);
    for (size_t k = 0; k < to.size(); ++k) {
      const RemoteBuffer& remote = *remote_buffer(gpu(), block, op.via, to[k].ref);
      const Region from = place(sum ? block.dests(op)[0] : block.sources(op)[k]);
      add(Item::Kind::send, from, {}, {remote.buffer, to[k].index, to[k].size});
      pending_[remote.rank].push_back(
          {{from, {remote.buffer, to[k].index, to[k].size}}, op_, items().size() - 1});
      if (shape(op.code).has(Role::Post)) post(channel(block, op, block.op_ids(op)[k]), true);
    }
  }

  ChannelKey channel(const ThreadBlock& block, const Op& op, uint32_t local) const {
    size_t type = 0;
    while (signalled_types[type] != op.via) ++type;
    return {type, uint32_t(channel_id(block, op.via, local))};
  }

  void post(ChannelKey key, bool publishes) {
    ChannelUse& of = use_[rank_][key];
    ChannelUse::Post& made = of.posts.emplace_back();
    made.block = block_;
    made.op = op_;
    const uint32_t peer = ends_[rank_].peers[key.type][key.id];
    const auto found = publishes ? pending_.find(peer) : pending_.end();
    if (found == pending_.end()) return;
    for (const Pending& put : found->second) {
      made.messages.push_back(put.data);
      items()[put.item].peer = peer;
      items()[put.item].channel = number_of(rank_, key);
    }
    pending_.erase(found);
  }

  /// Returns how many channels to the same peer come before this one, over all types.
  uint32_t number_of(uint32_t rank, ChannelKey key) const {
    const uint32_t peer = ends_[rank].peers[key.type][key.id];
    uint32_t number = 0;
    for (size_t type = 0; type <= key.type; ++type) {
      const std::vector<uint32_t>& peers = ends_[rank].peers[type];
      const auto end = type == key.type ? peers.begin() + key.id : peers.end();
      number += uint32_t(std::count(peers.begin(), end, peer));
    }
    return number;
  }

  /// A barrier is an event of each thread block that all others wait for.
  void arrive(uint32_t barrier) {
    const uint32_t turn = turns_[{block_, barrier}]++;
    const auto event = [&](uint32_t block) {
      const auto [entry, added] = arrivals_.try_emplace({barrier, turn, block}, ranks_[rank_].events);
      ranks_[rank_].events += added;
      return entry->second;
    };
    add(Item::Kind::release, {}, {}, {}).event = event(block_);
    for (const uint32_t other : members_[barrier]) {
      if (other != block_) add(Item::Kind::acquire, {}, {}, {}).event = event(other);
    }
  }

  struct SemaphoreUse {
    bool release = false;
    uint32_t block = 0, op = 0;
    size_t item = 0;
  };

  /// Matches the n-th acquire of each semaphore with its n-th release.
  void semaphores() {
    for (size_t id = 0; id < semaphores_.size(); ++id) {
      const std::vector<SemaphoreUse>& uses = semaphores_[id];
      if (uses.empty()) continue;
      const SemaphoreUse* first[2] = {nullptr, nullptr};
      std::vector<size_t> numbers[2];
      for (size_t k = 0; k < uses.size(); ++k) {
        const SemaphoreUse& use = uses[k];
        if (!first[use.release]) first[use.release] = &use;
        numbers[use.release].push_back(k);
        if (first[use.release]->block == use.block) continue;
        block_ = use.block;
        op_ = use.op;
        refuse(std::string("two thread blocks ") + (use.release ? "release" : "acquire") + " semaphore " +
               std::to_string(id) + ", and a step of MSCCL waits for one step of one thread block");
        return;
      }
      if (gpu().semaphores[id] != 0) {
        block_ = uses[0].block;
        op_ = uses[0].op;
        refuse("semaphore " + std::to_string(id) + " begins with " + std::to_string(gpu().semaphores[id]) +
               ", and the dependencies of MSCCL begin with 0");
        continue;
      }
      for (size_t n = 0; n < std::max(numbers[0].size(), numbers[1].size()); ++n) {
        const uint32_t event = ranks_[rank_].events++;
        for (const bool release : {false, true}) {
          if (n >= numbers[release].size()) continue;
          const SemaphoreUse& use = uses[numbers[release][n]];
          ranks_[rank_].blocks[use.block].items[use.item].event = event;
        }
      }
    }
  }

  /// Adds what the waits of this rank receive.
  void receive() {
    std::vector<std::vector<std::pair<size_t, Item>>> received(gpu().threadblocks.size());
    for (const auto& [key, use] : use_[rank_]) {
      const uint32_t peer = ends_[rank_].peers[key.type][key.id], mate = ends_[rank_].mates[key.type][key.id];
      if (mate == ChannelEnds::none) continue;
      const auto there = use_[peer].find({key.type, mate});
      if (there == use_[peer].end()) continue;
      const std::vector<ChannelUse::Post>& posts = there->second.posts;
      const ChannelUse::Post* first = nullptr;
      const ChannelUse::Await* first_await = nullptr;
      for (size_t k = 0; k < std::min(posts.size(), use.awaits.size()); ++k) {
        if (posts[k].messages.empty()) continue;
        const ChannelUse::Await& await = use.awaits[k];
        block_ = await.block;
        op_ = await.op;
        if (first && first->block != posts[k].block) {
          refuse("thread blocks " + std::to_string(first->block) + " and " + std::to_string(posts[k].block) +
                 " of rank " + std::to_string(peer) + " send on one channel, and MSCCL takes one of them");
          return;
        }
        if (first_await && first_await->block != await.block) {
          refuse("thread blocks " + std::to_string(first_await->block) + " and " +
                 std::to_string(await.block) + " of rank " + std::to_string(rank_) +
                 " receive on one channel, and MSCCL takes one of them");
          return;
        }
        first = &posts[k];
        first_await = &await;
        for (const PutData& message : posts[k].messages) {
          Item item;
          item.kind = Item::Kind::receive;
          item.destination = message.destination;
          item.op = op_;
          item.peer = peer;
          item.channel = number_of(peer, {key.type, mate});
          item.sender = posts[k].block;
          received[block_].push_back({await.item, item});
        }
      }
    }
    for (size_t block = 0; block < received.size(); ++block) {
      std::stable_sort(received[block].begin(), received[block].end(),
                       [](const auto& left, const auto& right) { return left.first < right.first; });
      std::vector<Item>& items = ranks_[rank_].blocks[block].items;
      std::vector<Item> all;
      size_t next = 0;
      for (size_t at = 0; at <= items.size(); ++at) {
        for (; next < received[block].size() && received[block][next].first == at; ++next)
          all.push_back(received[block][next].second);
        if (at < items.size()) all.push_back(items[at]);
      }
      items = std::move(all);
    }
  }

  const Plan& plan_;
  Report report_;
  std::vector<ChannelEnds> ends_;
  std::vector<RankItems> ranks_;
  std::set<std::pair<uint32_t, std::string>> refused_;  // by author's line and text
  std::vector<std::map<ChannelKey, ChannelUse>> use_;   // by rank
  uint32_t rank_ = 0, block_ = 0, op_ = 0;
  // This holds the puts of the current thread block that no signal has followed yet, by peer.
  std::map<uint32_t, std::vector<Pending>> pending_;
  // These belong to the current rank.
  std::vector<std::vector<SemaphoreUse>> semaphores_;
  std::map<uint32_t, std::vector<uint32_t>> members_;                      // by barrier: thread blocks
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> arrivals_;  // by barrier, turn, thread block
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> turns_;                // by thread block, barrier
};

}  // namespace

std::vector<RankItems> list_items(const Plan& plan, Diagnostics& out) { return Lister(plan, out).run(); }

}  // namespace chorale::msccl
