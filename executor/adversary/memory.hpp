#pragma once
/// \file
/// Memory models memory in which stores become visible late. A store waits in the buffer of its block until
/// it is performed, at the latest at a release. Stores are performed in any order, except that stores of one
/// thread to one cell keep their order. A load sees the stores of its thread, the stores of its block from
/// before the last synchronisation, and performed stores. If another block has overwritten a cell, the load
/// may see the previous value, unless an acquire has made the new one visible.
///
/// The blocks of a rank share another buffer. It holds stores to other ranks that a release at device scope
/// has passed on. The blocks of the rank see these stores. Peers see them only after a release at system
/// scope.

#include <cstdint>
#include <vector>

#include "program.hpp"
#include "turns.hpp"

namespace chorale::adversary {

/// Marks values with a wrong origin.
enum Taint : uint8_t { clean = 0, uninitialised = 1, overwritten = 2 };

struct Value {
  uint64_t value = 0;
  uint8_t taint = clean;
};

/// Says who loads or stores: a thread, in a segment of its block between two synchronisations.
struct Accessor {
  uint32_t thread = 0, block = 0, segment = 0;
  uint32_t view = 0;  ///< the time up to which it sees all performed stores
};

class Memory {
 public:
  /// Marks a writer that is not a block.
  static constexpr uint32_t outsider = ~uint32_t{0};

  explicit Memory(const Program& program) : program_(program) {}

  /// \param calm  perform stores at once
  void begin(bool calm, uint32_t stale_one_in);

  Value load(const Accessor& by, Ref ref, Draw& draw) const;
  /// Loads a packet. Returns false if this launch's packet has not arrived.
  bool load_packet(const Accessor& by, Ref ref, uint32_t flag, Value& value) const;
  void store(const Accessor& by, Ref ref, Value value, uint32_t flag);

  /// Performs one store of a buffer. The buffers of blocks have the lowest numbers, then those of ranks.
  void drain_one(uint32_t buffer, Draw& draw);
  bool empty(uint32_t buffer) const { return buffers_[buffer].empty(); }
  uint32_t buffers() const { return uint32_t(program_.blocks.size() + program_.memory.size()); }

  /// Performs the stores of the thread, and the stores of its block from before the last synchronisation. At
  /// device scope, this performs only stores to the device's memory.
  void release(const Accessor& by, bool system);
  /// Performs all stores of a block and of its rank's buffer.
  void release_all(uint32_t block);

  /// Writes at once, for a proxy or the application.
  void write(uint32_t cell, Value value, uint32_t flag = 0) { perform(cell, value, flag, outsider); }
  Value read(uint32_t cell) const { return {cells_[cell].value, cells_[cell].taint}; }
  bool has_packet(uint32_t cell, uint32_t flag) const { return cells_[cell].flag == flag; }
  /// Returns the number of stores performed so far.
  uint32_t now() const { return now_; }

  /// Lists the cells of packets that have been written since this list was last cleared.
  std::vector<uint32_t> arrived;

 private:
  struct Cell {
    uint64_t value = 0, before = 0;
    uint32_t time = 0, flag = 0, writer = outsider;
    uint32_t passed = 0;  ///< the time at which it was passed on to the writer's rank; 0: it was not
    uint8_t taint = clean, taint_before = clean;
  };
  struct Entry {
    Ref ref;
    uint32_t flag, thread, segment, block;
    Value value;
    uint32_t passed = 0;  ///< as in Cell
  };

  void perform(uint32_t cell, Value value, uint32_t flag, uint32_t writer, uint32_t passed = 0);
  void perform(const Entry& entry) {
    perform(cell_of(entry.ref), entry.value, entry.flag, entry.block, entry.passed);
  }
  bool perform_older(const Entry& entry);
  const Entry* own(const Accessor& by, Ref ref) const;
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
