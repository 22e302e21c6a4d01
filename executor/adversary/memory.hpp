#pragma once
/// \file
/// Models memory in which stores become visible late. A store waits in the buffer of its block until it is
/// performed, at a release at the latest. Stores are performed in any order, except that one thread's stores
/// to one cell keep theirs. A load sees its own thread's stores, its block's stores from before the last
/// synchronisation, and what has been performed. Instead of the last it may see what a cell held before
/// another block overwrote it, unless an acquire has shown the new value.
///
/// Blocks of a rank share one more buffer. It holds stores to other ranks that a release at the scope of the
/// device has passed on. The blocks of the rank see these stores; peers do not until a release at the scope
/// of the system.

#include <cstdint>
#include <vector>

#include "program.hpp"
#include "turns.hpp"

namespace chorale::adversary {

/// Says what is wrong with the origin of a value, if anything is.
enum Taint : uint8_t { clean = 0, uninitialised = 1, overwritten = 2 };

struct Value {
  uint64_t value = 0;
  uint8_t taint = clean;
};

/// A thread that loads or stores, in a segment of its block between two synchronisations.
struct Thread {
  uint32_t lane = 0, block = 0, segment = 0;
  uint32_t view = 0;  ///< it sees what was performed until then
};

class Memory {
 public:
  /// Marks writers that are not blocks.
  static constexpr uint32_t outsider = ~uint32_t{0};

  explicit Memory(const Program& program) : program_(program) {}

  /// \param calm  stores are performed at once
  void begin(bool calm, uint32_t stale_one_in);

  Value load(const Thread& thread, Ref ref, Draw& draw) const;
  /// Returns false if this launch's packet has not come.
  bool load_packet(const Thread& thread, Ref ref, uint32_t flag, Value& value) const;
  void store(const Thread& thread, Ref ref, Value value, uint32_t flag);

  /// Performs one store of a buffer. The buffers of blocks come first, then those of ranks.
  void drain_one(uint32_t buffer, Draw& draw);
  bool empty(uint32_t buffer) const { return buffers_[buffer].empty(); }
  uint32_t buffers() const { return uint32_t(program_.blocks.size() + program_.memory.size()); }

  /// Performs what the thread stored, and what its block stored before the last synchronisation. At the scope
  /// of the device, this reaches only the device's own memory.
  void release(const Thread& thread, bool system);
  /// Performs all stores of a block and of its rank's buffer.
  void release_all(uint32_t block);

  /// Writes at once, for a proxy or the application.
  void write(uint32_t cell, Value value, uint32_t flag = 0) { perform(cell, value, flag, outsider); }
  Value read(uint32_t cell) const { return {cells_[cell].value, cells_[cell].taint}; }
  bool has_packet(uint32_t cell, uint32_t flag) const { return cells_[cell].flag == flag; }
  /// Returns the number of stores performed so far.
  uint32_t now() const { return now_; }

  /// Cells of packets that have been written since the list was last emptied.
  std::vector<uint32_t> arrived;

 private:
  struct Cell {
    uint64_t value = 0, before = 0;
    uint32_t time = 0, flag = 0, writer = outsider;
    uint32_t passed = 0;  ///< the time it was passed on to the writer's rank; 0: it was not
    uint8_t taint = clean, taint_before = clean;
  };
  struct Entry {
    Ref ref;
    uint32_t flag, lane, segment, block;
    Value value;
    uint32_t passed = 0;  ///< see Cell
  };

  void perform(uint32_t cell, Value value, uint32_t flag, uint32_t writer, uint32_t passed = 0);
  void perform(const Entry& entry) {
    perform(cell_of(entry.ref), entry.value, entry.flag, entry.block, entry.passed);
  }
  bool perform_older(const Entry& entry);
  const Entry* own(const Thread& thread, Ref ref) const;
  std::vector<Entry>& of_rank(uint32_t block) {
    return buffers_[program_.blocks.size() + program_.blocks[block].rank];
  }

  const Program& program_;
  bool calm_ = false;
  uint32_t stale_one_in_ = 0, now_ = 0;
  std::vector<Cell> cells_, fresh_;
  std::vector<std::vector<Entry>> buffers_;
};

}  // namespace chorale::adversary
