#pragma once
/// \file
/// Vector clocks of many chains. Copies share what they have in common: a clock is a list of leaves of 64
/// counts, and both are copied only when they are written. Who wrote a leaf is kept with it: of two leaves of
/// one writer, whose clock only grows, the later one knows all that the other does.

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace chorale::proof {

/// How far each chain is known to have come: by chain, the first of its segments that is not.
class Clock {
 public:
  /// Where clocks of one number of chains live; outlives them.
  class Room;

  Clock() = default;
  explicit Clock(Room& room) : room_(&room) {}
  Clock(const Clock& other) : room_(other.room_), node_(other.node_) { keep(); }
  Clock(Clock&& other) noexcept : room_(other.room_), node_(other.node_) { other.node_ = nullptr; }
  /// Takes what the other knows, and stays who it is.
  Clock& operator=(Clock other) noexcept {
    std::swap(room_, other.room_);
    std::swap(node_, other.node_);
    return *this;
  }
  ~Clock() { drop(); }

  /// Promises that this object will never know less than it did. `writer`: not 0, and no other's.
  void name(uint32_t writer) { writer_ = writer; }

  uint32_t operator[](uint32_t chain) const;
  void raise(uint32_t chain, uint32_t segment);
  /// Knows what both know.
  void join(const Clock& other);
  /// True if both are one and the same; clocks that are not may be equal all the same.
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
  uint32_t writer, write;  ///< 0: of no one that only grows
  int32_t at[size];        ///< signed, which is what every processor compares many at a time
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
  /// Allocated many at a time: a proof of many chains takes thousands.
  std::vector<std::unique_ptr<Leaf[]>> all_leaves_;
  std::vector<Node*> free_nodes_;
  std::vector<Leaf*> free_leaves_;
};

}  // namespace chorale::proof
