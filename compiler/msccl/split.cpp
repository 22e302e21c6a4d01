// A thread block of MSCCL sends to one peer and receives from one peer. This file makes one thread block per
// peer of a thread block with several. The items are in groups: sends and the receives after them, or items
// of other kinds. Within a group, each peer's thread block does its part. It begins when all parts of the
// group before have ended. A receive need not wait for sends before it, because its peer may send at any
// time.

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "export.hpp"

namespace chorale::msccl {
namespace {

using PeerChannel = std::pair<uint32_t, uint32_t>;  // Item::peer and Item::channel

PeerChannel key_of(const Item& item) { return {item.peer, item.channel}; }

bool is_message(const Item& item) {
  return item.kind == Item::Kind::send || item.kind == Item::Kind::receive;
}

/// Splits one thread block.
class Splitter {
 public:
  Splitter(const BlockItems& from, uint32_t& events) : from_(from), events_(events) {}

  /// Appends the parts. `numbers` gets the number of each peer's part.
  void run(std::vector<BlockItems>& out, std::map<PeerChannel, uint32_t>& numbers) {
    std::set<PeerChannel> sends, receives;
    for (const Item& item : from_.items) {
      if (is_message(item)) (item.kind == Item::Kind::send ? sends : receives).insert(key_of(item));
    }
    const bool whole = sends.size() <= 1 && receives.size() <= 1;
    const auto first = uint32_t(out.size());
    if (whole) {
      parts_.push_back(from_);
      for (const std::set<PeerChannel>* keys : {&sends, &receives}) {
        for (const PeerChannel& key : *keys) numbers[key] = first;
      }
    } else {
      split();
      for (const auto& [key, part] : part_of_) numbers[key] = first + part;
    }
    for (BlockItems& part : parts_) {
      part.origin = from_.origin;
      for (const Item& item : part.items) {
        if (item.kind == Item::Kind::receive) part.receive = item.peer;
        if (item.kind != Item::Kind::send) continue;
        part.send = item.peer;
        part.send_channel = item.channel;
      }
      out.push_back(std::move(part));
    }
  }

 private:
  enum class Phase : uint8_t { none, sends, receives, other };

  void split() {
    for (const Item& item : from_.items) {
      const Phase phase = item.kind == Item::Kind::send      ? Phase::sends
                          : item.kind == Item::Kind::receive ? Phase::receives
                                                             : Phase::other;
      const bool same_group = phase == phase_ || (phase == Phase::receives && phase_ == Phase::sends);
      if (!same_group) begin_group();
      phase_ = phase;
      put(item, is_message(item) ? part_of(key_of(item)) : home());
    }
  }

  uint32_t part_of(const PeerChannel& key) {
    const auto [entry, added] = part_of_.try_emplace(key, uint32_t(parts_.size()));
    if (added) parts_.emplace_back();
    return entry->second;
  }

  /// Returns the part for items that are no messages: that of the group before, if it has one only, so that
  /// make_steps() can join the items. Otherwise it is the first one.
  uint32_t home() {
    if (!now_.empty()) return now_.front();
    if (before_.size() == 1) return before_.front().first;
    if (parts_.empty()) {
      const auto message = std::find_if(from_.items.begin(), from_.items.end(), is_message);
      return part_of(key_of(*message));
    }
    return 0;
  }

  void begin_group() {
    if (now_.empty()) return;
    before_.clear();
    for (const uint32_t part : now_) {
      before_.emplace_back(part, events_);
      add_event(part, Item::Kind::release, events_++);
    }
    now_.clear();
  }

  void put(const Item& item, uint32_t part) {
    if (std::find(now_.begin(), now_.end(), part) == now_.end()) {
      now_.push_back(part);
      for (const auto& [other, event] : before_) {
        if (other != part) add_event(part, Item::Kind::acquire, event);
      }
    }
    op_ = item.op;
    parts_[part].items.push_back(item);
  }

  void add_event(uint32_t part, Item::Kind kind, uint32_t event) {
    Item item;
    item.kind = kind;
    item.event = event;
    item.op = op_;
    parts_[part].items.push_back(item);
  }

  const BlockItems& from_;
  uint32_t& events_;
  std::vector<BlockItems> parts_;
  std::map<PeerChannel, uint32_t> part_of_;
  Phase phase_ = Phase::none;
  std::vector<uint32_t> now_;  // parts of the current group
  std::vector<std::pair<uint32_t, uint32_t>>
      before_;  // those of the group before, and the events of their ends
  uint32_t op_ = 0;
};

}  // namespace

void split_blocks(std::vector<RankItems>& ranks) {
  // By rank and thread block of the plan: the new thread blocks of its peers.
  std::vector<std::vector<std::map<PeerChannel, uint32_t>>> numbers(ranks.size());
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    std::vector<BlockItems> blocks;
    for (const BlockItems& block : ranks[rank].blocks)
      Splitter(block, ranks[rank].events).run(blocks, numbers[rank].emplace_back());
    ranks[rank].blocks = std::move(blocks);
  }
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    for (BlockItems& block : ranks[rank].blocks) {
      for (const Item& item : block.items) {
        if (item.kind == Item::Kind::receive)
          block.sender = numbers[item.peer][item.sender].at({rank, item.channel});
      }
    }
  }
}

}  // namespace chorale::msccl
