#pragma once
/// \file
/// Memory that is seen late. A store waits in the buffer of its block until it is performed, in any order but
/// that of one thread's stores to one cell, and at a release at the latest. A load sees its thread's stores,
/// its block's from before the last synchronisation, and what has been performed, or instead what a cell held
/// before another block overwrote it, unless an acquire has shown that.
///
/// Blocks of a rank share one more buffer: what a release at the scope of the device has passed on of stores
/// to other ranks. They see it, peers do not until a release at the scope of the system.

#include <cstdint>
#include <vector>

#include "program.hpp"
#include "turns.hpp"

namespace chorale::adversary {

/// Where a value came from, as far as that is wrong.
enum Taint : uint8_t { clean = 0, uninitialised = 1, overwritten = 2 };

struct Value {
  uint64_t value = 0;
  uint8_t taint = clean;
};

/// Who loads or stores: a thread in a segment of its block between synchronisations.
struct Thread {
  uint32_t lane = 0, block = 0, segment = 0;
  uint32_t view = 0;  ///< what was performed until then is seen
};

class Memory {
 public:
  /// Who writes, beside blocks.
  static constexpr uint32_t outsider = ~uint32_t{0};

  explicit Memory(const Program& program) : program_(program) {}

  /// \param calm  stores are performed at once
  void begin(bool calm, uint32_t stale_one_in);

  Value load(const Thread& thread, Ref ref, Draw& draw) const;
  /// False: this launch's packet has not come.
  bool load_packet(const Thread& thread, Ref ref, uint32_t flag, Value& value) const;
  void store(const Thread& thread, Ref ref, Value value, uint32_t flag);

  /// Performs one store of a buffer: blocks come first, then ranks.
  void drain_one(uint32_t buffer, Draw& draw);
  bool empty(uint32_t buffer) const { return buffers_[buffer].empty(); }
  uint32_t buffers() const { return uint32_t(program_.blocks.size() + program_.memory.size()); }

  /// What the thread did, and its block before the last synchronisation, is performed; at the scope of the
  /// device, only as far as the device's own memory goes.
  void release(const Thread& thread, bool system);
  /// All that a block and its rank did is performed.
  void release_all(uint32_t block);

  /// At once, by a proxy or the application.
  void write(uint32_t cell, Value value, uint32_t flag = 0) { perform(cell, value, flag, outsider); }
  Value read(uint32_t cell) const { return {cells_[cell].value, cells_[cell].taint}; }
  bool has_packet(uint32_t cell, uint32_t flag) const { return cells_[cell].flag == flag; }
  /// Stores performed so far.
  uint32_t now() const { return now_; }

  /// Cells of packets that have been written since this was emptied.
  std::vector<uint32_t> arrived;

 private:
  struct Cell {
    uint64_t value = 0, before = 0;
    uint32_t time = 0, flag = 0, writer = outsider;
    uint32_t passed = 0;  ///< when it was passed on to the writer's rank; 0: not before
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
