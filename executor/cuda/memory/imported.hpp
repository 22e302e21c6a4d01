/// \file
/// An Imported is a peer's allocation, or a row of them, opened in this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "address_range.hpp"
#include "exports.hpp"
#include "ipc_import.hpp"

namespace chorale::cuda {

/// Holds the data that is needed to open one allocation of a peer. The comment of a member names the sharings
/// that use it.
struct Foreign {
  uint64_t bytes = 0;
  Sharing sharing = Sharing::ipc;
  HandleBytes handle{};          ///< ipc, fabric
  int descriptor = -1;           ///< descriptor
  world::Process owner;          ///< ipc
  uint64_t base = 0;             ///< ipc: the address in the owner's process
  bool may_close_others = true;  ///< ipc: see IpcImport
};

/// Maps one cudaMalloc allocation, or a row of adjacent cuMemCreate allocations in one range of addresses.
/// The device that is current at construction may read and write it.
class Imported {
 public:
  /// \throws RunError
  explicit Imported(std::span<const Foreign> parts);
  Imported(const Imported&) = delete;
  Imported& operator=(const Imported&) = delete;

  char* data() const { return by_ipc_ ? by_ipc_->data() : range_.data(); }

  /// Unmaps the memory here because its owner has freed it, even if this object is still in use.
  void close() noexcept;
  /// Returns true if it was closed, by close() or as any IpcImport may be.
  bool stale() const { return closed_ || (by_ipc_ && by_ipc_->stale()); }

 private:
  std::optional<IpcImport> by_ipc_;
  AddressRange range_;  // otherwise
  bool closed_ = false;
};

/// Keeps opened imports, so that each allocation is opened only once, also for other buffers in it.
class ImportCache {
 public:
  using Key = std::pair<int, std::vector<uint64_t>>;  ///< the rank, and its numbers of the allocations

  std::shared_ptr<Imported> find(const Key& key);  ///< empty: it has to be opened
  std::shared_ptr<Imported> open(const Key& key, std::span<const Foreign> parts);

  /// Closes imports that hold one of `freed`, even if they are in use. Freed memory stays allocated as long
  /// as a peer has it open, and a binding may keep it open for calls that never come again.
  void drop(int rank, const std::vector<uint64_t>& freed);

  /// Closes the imports that have been unused for longest, until at most `limit` unused ones are left.
  void limit_unused(size_t limit);

  size_t size() const { return held_.size(); }
  size_t opened() const { return opened_; }

 private:
  struct Entry {
    std::shared_ptr<Imported> imported;
    uint64_t last_use;
  };
  std::map<Key, Entry> held_;
  uint64_t uses_ = 0;
  size_t opened_ = 0;
};

}  // namespace chorale::cuda
