#include "clock.hpp"

#include <algorithm>
#include <cstring>

namespace chorale::proof {

Clock::Node* Clock::Room::node() {
  if (free_nodes_.empty()) {
    Node& fresh = nodes_.emplace_back();
    fresh.leaves.resize(leaves_);
    free_nodes_.push_back(&fresh);
  }
  Node* const node = free_nodes_.back();
  free_nodes_.pop_back();
  node->uses = 1;
  std::fill(node->leaves.begin(), node->leaves.end(), nullptr);
  return node;
}

Clock::Leaf* Clock::Room::leaf() {
  if (free_leaves_.empty()) {
    constexpr size_t together = 64;
    all_leaves_.emplace_back(new Leaf[together]);  // not set here: a leaf is set when it is taken
    for (size_t at = together; at > 0; --at) free_leaves_.push_back(&all_leaves_.back()[at - 1]);
  }
  Leaf* const leaf = free_leaves_.back();
  free_leaves_.pop_back();
  leaf->uses = 1;
  return leaf;
}

void Clock::Room::drop(Leaf* leaf) {
  if (leaf && --leaf->uses == 0) free_leaves_.push_back(leaf);
}

void Clock::keep() const {
  if (node_) ++node_->uses;
}

void Clock::drop() {
  if (!node_ || --node_->uses) return;
  for (Leaf* const leaf : node_->leaves) room_->drop(leaf);
  room_->free_nodes_.push_back(node_);
}

uint32_t Clock::operator[](uint32_t chain) const {
  const Leaf* const leaf = node_ ? node_->leaves[chain / Leaf::size] : nullptr;
  return leaf ? uint32_t(leaf->at[chain % Leaf::size]) : 0;
}

Clock::Node& Clock::own() {
  if (!node_) {
    node_ = room_->node();
  } else if (node_->uses > 1) {
    Node* const copy = room_->node();
    copy->leaves = node_->leaves;
    for (Leaf* const leaf : copy->leaves) {
      if (leaf) ++leaf->uses;
    }
    --node_->uses;
    node_ = copy;
  }
  return *node_;
}

Clock::Leaf& Clock::own_leaf(uint32_t at) {
  Leaf*& leaf = own().leaves[at];
  if (!leaf) {
    leaf = room_->leaf();
    std::memset(leaf->at, 0, sizeof leaf->at);
  } else if (leaf->uses > 1) {
    Leaf* const copy = room_->leaf();
    std::memcpy(copy->at, leaf->at, sizeof copy->at);
    --leaf->uses;
    leaf = copy;
  }
  leaf->writer = writer_;
  leaf->write = ++writes_;
  return *leaf;
}

void Clock::raise(uint32_t chain, uint32_t segment) {
  if ((*this)[chain] >= segment) return;
  own_leaf(chain / Leaf::size).at[chain % Leaf::size] = int32_t(segment);
}

void Clock::join(const Clock& other) {
  if (!other.node_ || node_ == other.node_) return;
  if (!node_) {
    *this = other;
    return;
  }
  for (uint32_t at = 0; at < room_->leaves_; ++at) {
    Leaf* const mine = node_->leaves[at];
    Leaf* const theirs = other.node_->leaves[at];
    if (!theirs || mine == theirs) continue;
    const bool comparable = mine && mine->writer && mine->writer == theirs->writer;
    if (comparable && mine->write > theirs->write) continue;
    int32_t ahead = 0, behind = 0;  // mine against theirs; int for speed: this loop dominates large proofs
    for (uint32_t k = 0; mine && !comparable && k < Leaf::size; ++k) {
      ahead |= -int32_t(mine->at[k] > theirs->at[k]);
      behind |= -int32_t(mine->at[k] < theirs->at[k]);
    }
    if (mine && !comparable && !behind) continue;
    if (!ahead) {
      Leaf*& slot = own().leaves[at];
      room_->drop(slot);
      slot = theirs;
      ++theirs->uses;
      continue;
    }
    Leaf& joined = own_leaf(at);
    for (uint32_t k = 0; k < Leaf::size; ++k) joined.at[k] = std::max(joined.at[k], theirs->at[k]);
  }
}

}  // namespace chorale::proof
