#pragma once
/// \file
/// A Clock is a vector clock with many chains. Copies share data: a clock is a list of leaves of 64 counts,
/// and both are copied only on write. A leaf remembers which clock wrote it. That clock only grows, so of two
/// leaves that it wrote, the later one includes the earlier one.

#include <cstdint>
#include <deque>
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
  Clock(const Clock& other) : room_(other.room_), node_(other.node_) { keep(); }
  Clock(Clock&& other) noexcept : room_(other.room_), node_(other.node_) { other.node_ = nullptr; }
  /// Takes over the other clock's knowledge, and keeps the name of this clock.
  Clock& operator=(Clock other) noexcept {
    std::swap(room_, other.room_);
    std::swap(node_, other.node_);
    return *this;
  }
  ~Clock() { drop(); }

  /// Promises that this object will never know less than before. `writer` must not be 0, and no other clock
  /// may have it.
  void name(uint32_t writer) { writer_ = writer; }

  uint32_t operator[](uint32_t chain) const;
  void raise(uint32_t chain, uint32_t segment);
  /// Adds the other clock's knowledge.
  void join(const Clock& other);
  /// Returns whether both share the same data. Clocks that do not share data may still be equal.
  bool same(const Clock& other) const { return node_ == other.node_; }

 private:
  struct Leaf;
  struct Node;
  void keep() const;
  void drop();
  Node& own();
  Leaf& own_leaf(uint32_t leaf);

  Room* room_ = nullptr;
  Node* node_ = nullptr;
  uint32_t writer_ = 0, writes_ = 0;
};

struct Clock::Leaf {
  static constexpr uint32_t size = 64;
  uint32_t uses;
  uint32_t writer, write;  ///< 0: the writer has no name, so it may also know less later
  int32_t at[size];        ///< signed, because every processor can compare many signed numbers at a time
};

struct Clock::Node {
  uint32_t uses;
  std::vector<Leaf*> leaves;  ///< null: all zero
};

class Clock::Room {
 public:
  explicit Room(uint32_t chains) : leaves_((chains + Leaf::size - 1) / Leaf::size) {}

 private:
  friend class Clock;
  Node* node();
  Leaf* leaf();
  void drop(Leaf*);

  uint32_t leaves_;
  std::deque<Node> nodes_;
  /// Owns the leaves. They are allocated many at a time, because a proof of many chains needs thousands.
  std::vector<std::unique_ptr<Leaf[]>> all_leaves_;
  std::vector<Node*> free_nodes_;
  std::vector<Leaf*> free_leaves_;
};

}  // namespace chorale::proof
