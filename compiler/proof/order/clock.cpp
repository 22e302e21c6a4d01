#include "clock.hpp"

#include <algorithm>
#include <cstring>

namespace chorale::proof {

/// Returns a copy that only the caller uses. A null node gives one with zeros.
Clock::Node* Clock::Room::copy(const Node* node, uint32_t level) {
  if (level == 0) {
    Leaf* const leaf = leaves_.take();
    if (node)
      std::memcpy(leaf->at, static_cast<const Leaf*>(node)->at, sizeof leaf->at);
    else
      std::memset(leaf->at, 0, sizeof leaf->at);
    return leaf;
  }
  Inner* const inner = inner_.take();
  for (uint32_t part = 0; part < Inner::size; ++part) {
    Node* const of = node ? static_cast<const Inner*>(node)->parts[part] : nullptr;
    if (of) ++of->uses;
    inner->parts[part] = of;
  }
  return inner;
}

void Clock::Room::drop(Node* node, uint32_t level) {
  if (!node || --node->uses) return;
  if (level == 0) return leaves_.give_back(static_cast<Leaf*>(node));
  Inner* const inner = static_cast<Inner*>(node);
  for (Node* const part : inner->parts) drop(part, level - 1);
  inner_.give_back(inner);
}

void Clock::free() {
  ++root_->uses;
  room_->drop(root_, room_->levels_);
}

uint32_t Clock::operator[](uint32_t chain) const {
  if (!root_) return 0;
  const Node* node = root_;
  for (uint32_t level = room_->levels_; node && level > 0; --level)
    node = static_cast<const Inner*>(node)->parts[Room::part(chain, level)];
  return node ? uint32_t(static_cast<const Leaf*>(node)->at[chain % Leaf::size]) : 0;
}

/// Returns a node of this clock's own, in place of one of its nodes.
Clock::Node* Clock::own(Node* node, uint32_t level) {
  if (!node || node->uses > 1) {
    Node* const copy = room_->copy(node, level);
    if (node) --node->uses;
    node = copy;
  }
  stamp(*node);
  return node;
}

void Clock::raise(uint32_t chain, uint32_t segment) {
  if ((*this)[chain] >= segment) return;
  Node** slot = &root_;
  for (uint32_t level = room_->levels_; level > 0; --level) {
    *slot = own(*slot, level);
    slot = &static_cast<Inner*>(*slot)->parts[Room::part(chain, level)];
  }
  *slot = own(*slot, 0);
  static_cast<Leaf*>(*slot)->at[chain % Leaf::size] = int32_t(segment);
}

void Clock::join(const Clock& other) {
  if (!other.root_ || root_ == other.root_) return;
  if (!root_) {
    *this = other;
    return;
  }
  const auto [node, more] = join(root_, other.root_, room_->levels_, true);
  if (node == root_) return;
  if (node == other.root_) ++node->uses;
  room_->drop(root_, room_->levels_);
  root_ = node;
}

Clock::Joined Clock::join_leaves(Leaf& mine, Leaf& theirs, bool sole) {
  int32_t ahead = 0, behind = 0;  // mine against theirs; int for speed
  for (uint32_t k = 0; k < Leaf::size; ++k) {
    ahead |= -int32_t(mine.at[k] > theirs.at[k]);
    behind |= -int32_t(mine.at[k] < theirs.at[k]);
  }
  if (!behind) return {&mine, false};
  if (!ahead) return {&theirs, true};
  Leaf& joined = sole && mine.uses == 1 ? mine : *room_->leaves_.take();
  for (uint32_t k = 0; k < Leaf::size; ++k) joined.at[k] = std::max(mine.at[k], theirs.at[k]);
  stamp(joined);
  return {&joined, true};
}

/// \param sole  whether only this clock uses the nodes above `mine`
Clock::Joined Clock::join(Node* mine, Node* theirs, uint32_t level, bool sole) {
  if (!theirs || mine == theirs) return {mine, false};
  if (!mine) return {theirs, true};
  if (mine->writer && mine->writer == theirs->writer)
    return mine->write > theirs->write ? Joined{mine, false} : Joined{theirs, true};
  if (level == 0) return join_leaves(static_cast<Leaf&>(*mine), static_cast<Leaf&>(*theirs), sole);
  Inner &of_mine = static_cast<Inner&>(*mine), &of_theirs = static_cast<Inner&>(*theirs);
  sole &= mine->uses == 1;
  Node* parts[Inner::size];
  bool more = false, all_theirs = true;
  for (uint32_t part = 0; part < Inner::size; ++part) {
    const Joined joined = join(of_mine.parts[part], of_theirs.parts[part], level - 1, sole);
    parts[part] = joined.node;
    more |= joined.more;
    all_theirs &= joined.node == of_theirs.parts[part];
  }
  if (!more) return {mine, false};
  if (all_theirs) return {theirs, true};
  Inner& inner = sole ? of_mine : *room_->inner_.take();
  for (uint32_t part = 0; part < Inner::size; ++part) {
    Node *const before = of_mine.parts[part], *const after = parts[part];
    const bool shared = after && (after == of_theirs.parts[part] || after == before);  // others have one use
    if (sole && after == before) continue;
    if (shared) ++after->uses;
    if (sole) room_->drop(before, level - 1);
    inner.parts[part] = after;
  }
  stamp(inner);
  return {&inner, true};
}

}  // namespace chorale::proof
