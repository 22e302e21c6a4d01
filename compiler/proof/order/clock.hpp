#pragma once
/// \file
/// A Clock is a vector clock with many chains. Copies share data: a clock is a tree whose leaves hold 32
/// counts each, and nodes are copied only on write. A node remembers which clock wrote it. That clock only
/// grows, so of two nodes that it wrote at one place of its tree, the later one includes the earlier one.
///
/// Blocks far from each other learn of each other through the same blocks. So joining two clocks mostly
/// compares the numbers of a few nodes, even if all counts have changed since.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace chorale::proof {

/// Records, by chain, the first segment that is not known to have ended.
class Clock {
 public:
  /// Stores all clocks for one number of chains. It must outlive them.
  class Room;

  Clock() = default;
  explicit Clock(Room& room) : room_(&room) {}
  Clock(const Clock& other) : room_(other.room_), root_(other.root_) {
    if (root_) ++root_->uses;
  }
  Clock(Clock&& other) noexcept : room_(other.room_), root_(other.root_) { other.root_ = nullptr; }
  /// Takes over the other clock's knowledge, and keeps the name of this clock.
  Clock& operator=(Clock other) noexcept {
    std::swap(room_, other.room_);
    std::swap(root_, other.root_);
    return *this;
  }
  ~Clock() {
    if (root_ && --root_->uses == 0) free();
  }

  /// Promises that this object will never know less than before. `writer` must not be 0, and no other clock
  /// may have it.
  void name(uint32_t writer) { writer_ = writer; }

  uint32_t operator[](uint32_t chain) const;
  void raise(uint32_t chain, uint32_t segment);
  /// Adds the other clock's knowledge.
  void join(const Clock& other);
  /// Returns whether both share the same data. Clocks that do not share data may still be equal.
  bool same(const Clock& other) const { return root_ == other.root_; }

 private:
  struct Node {
    uint32_t uses;
    uint32_t writer, write;  ///< 0: the writer has no name, so it may also know less later
  };
  struct Leaf;
  struct Inner;
  /// Holds the result of a join: a node, and whether it knows more than this clock's node did. The node is
  /// this clock's, the other clock's, or a new one with one use.
  struct Joined {
    Node* node;
    bool more;
  };

  void free();
  Node* own(Node* node, uint32_t level);
  void stamp(Node& node) {
    node.writer = writer_;
    node.write = ++writes_;
  }
  Joined join(Node* mine, Node* theirs, uint32_t level, bool sole);
  Joined join_leaves(Leaf& mine, Leaf& theirs, bool sole);

  Room* room_ = nullptr;
  Node* root_ = nullptr;  ///< null: all zero, as everywhere in the tree
  uint32_t writer_ = 0, writes_ = 0;
};

struct Clock::Leaf : Node {
  static constexpr uint32_t bits = 5, size = 1 << bits;
  int32_t at[size];  ///< signed, because every processor can compare many signed numbers at a time
};

struct Clock::Inner : Node {
  static constexpr uint32_t bits = 3, size = 1 << bits;
  Node* parts[size];
};

class Clock::Room {
 public:
  explicit Room(uint32_t chains) {
    while (chains > Leaf::size << (levels_ * Inner::bits)) ++levels_;
  }

 private:
  friend class Clock;

  /// Stores nodes of one kind. They are allocated many at a time, because a proof of many chains needs
  /// thousands.
  template <class Kind>
  class Store {
   public:
    Kind* take() {
      if (free_.empty()) {
        constexpr size_t together = 64;
        all_.emplace_back(new Kind[together]);  // not set here: a node is set when it is taken
        for (size_t at = together; at > 0; --at) free_.push_back(&all_.back()[at - 1]);
      }
      Kind* const node = free_.back();
      free_.pop_back();
      node->uses = 1;
      return node;
    }
    void give_back(Kind* node) { free_.push_back(node); }

   private:
    std::vector<std::unique_ptr<Kind[]>> all_;
    std::vector<Kind*> free_;
  };

  /// Returns the position of a chain among the parts of a node. Leaves have level 0.
  static uint32_t part(uint32_t chain, uint32_t level) {
    return chain >> (Leaf::bits + (level - 1) * Inner::bits) & (Inner::size - 1);
  }
  Node* copy(const Node* node, uint32_t level);
  void drop(Node* node, uint32_t level);

  uint32_t levels_ = 0;  ///< of inner nodes
  Store<Leaf> leaves_;
  Store<Inner> inner_;
};

}  // namespace chorale::proof
