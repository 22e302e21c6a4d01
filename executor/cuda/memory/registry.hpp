/// \file
/// A Registry makes allocations of this rank known to its peers when a call first passes them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "chorale/window.hpp"
#include "chorale/world.hpp"
#include "exports.hpp"
#include "identity.hpp"
#include "peer_memory.hpp"
#include "pool.hpp"

namespace chorale::cuda {

/// Says at which address each rank sees an allocation of this rank.
struct SeenBy {
  uint64_t base = 0, bytes = 0;  ///< the allocation, as this rank sees it
  std::vector<uint64_t> at;      ///< by rank: the address of `base` there; 0: that rank has not mapped it

  bool contains(const void* from, uint64_t size) const {
    const uint64_t begin = reinterpret_cast<uint64_t>(from);
    return begin >= base && begin - base <= bytes && size <= bytes - (begin - base);
  }
};

/// Holds memory that all peers see from the beginning. A call copies through it what peers cannot access.
struct BounceBuffer {
  static constexpr uint64_t spare = 512;  ///< more bytes than asked for, so that an output can be aligned
  Pool::Block block;
  SeenBy seen;
};

/// Maps allocations of this rank at its peers. It exchanges nothing when a call passes memory that peers
/// know. For other memory it asks the peers, where a thread of each maps the memory: the rank waits a short
/// time for the answers, and the peers' calls do not wait at all. So a rank may pass new memory alone.
///
/// A peer keeps memory mapped after its owner has freed it. The owner looks for freed memory in find(): when
/// the memory is new, and once a second. tell_freed() then tells the peer, which unmaps the memory in its
/// next close_freed(). That waits for the GPU, as cudaFree() does. The peer's thread never unmaps memory,
/// because a kernel on its GPU may be waiting for the rank that asks.
///
/// Only the thread that calls the executor calls these functions. All ranks are on one host.
class Registry {
 public:
  static constexpr size_t most_allocations = 1024;  ///< known to the peers at a time
  /// Limits the time for which find() waits for peers. Tests change it, so that no result depends on time.
  inline static std::chrono::milliseconds most_wait{100};
  /// After a peer has not answered in time, find() does not wait for this memory again for so long. After
  /// many refusals it does not ask again for so long. Tests change it.
  inline static std::chrono::milliseconds between_refusals{1000};

  /// Makes the registry. Collective. The arguments must outlive it.
  Registry(World& world, Imports& imports, Pool& pool);
  ~Registry();

  /// Returns where the ranks see the allocation that contains `[at, at + bytes)`. Returns null if some rank
  /// cannot map it, or has not mapped it yet. why_not() then returns the reason. The result is valid until
  /// the next find().
  const SeenBy* find(const void* at, uint64_t bytes);
  const std::string& why_not() const { return why_not_; }

  /// Tells the peers which memory of this rank find() has found freed, so that they unmap it. Call it when
  /// all find() of a call have returned. A peer that unmaps memory may wait for its running kernels, and maps
  /// nothing meanwhile. If such a kernel waited for this rank, and this rank for a mapping, both would wait.
  void tell_freed();

  /// Returns why no peer can map memory of this kind; "" if peers can.
  static std::string why_not_mapped(const void* at, uint64_t bytes);

  /// Returns whether close_freed() has something to do. It takes a few nanoseconds.
  bool peers_have_freed() const;
  /// Unmaps the memory that peers have freed.
  void close_freed();

  /// Returns a buffer of at least `bytes` bytes, the same one as before if that is long enough. Collective,
  /// with the same `bytes` on all ranks.
  std::shared_ptr<const BounceBuffer> bounce_buffer(uint64_t bytes);

  size_t known() const { return known_.size(); }  ///< allocations of this rank
  size_t opened() const;                          ///< allocations of peers

 private:
  struct Board;
  /// Holds an allocation of this rank.
  struct Known {
    SeenBy seen;
    Segment segment;
    uint64_t number = 0;                                ///< by which peers know it, see Exports
    size_t place = 0;                                   ///< in Board::alive
    int refusals = 0;                                   ///< how often a peer could not map it
    std::chrono::steady_clock::time_point next_ask{};   ///< after many refusals
    std::chrono::steady_clock::time_point next_wait{};  ///< after a peer has not answered in time
  };

  Board& board(int rank) const;
  bool shares_process(int rank) const;
  const SeenBy* fail(std::string why);
  Known* known_at(uint64_t at);
  Known* add(const void* at, uint64_t bytes);
  void drop_freed();
  void look_for_freed();
  bool complete(Known& one);
  enum class Answer { none, yes, no };
  Answer ask(int peer, Known& one);
  void take_answer(int peer, uint64_t number, uint64_t address);
  void serve();
  void answer(int peer);

  World& world_;
  Imports& imports_;
  Pool& pool_;
  const int rank_;
  const int device_;
  std::optional<Window> window_;     ///< by rank: its Board; none if all ranks are in this process
  std::map<uint64_t, Known> known_;  ///< by base
  std::vector<bool> places_;         ///< the places of Board::alive that are taken
  Exports exports_;
  std::vector<char> in_request_;      ///< by rank: an answer to this rank's request is not taken yet
  uint64_t untold_frees_ = 0;         ///< to be added to Board::frees
  std::vector<uint64_t> seen_frees_;  ///< by rank: Board::frees when this rank last looked
  std::chrono::steady_clock::time_point next_look_{};
  std::shared_ptr<const BounceBuffer> bounce_;
  std::string why_not_;

  mutable std::mutex mutex_;
  struct Opened {
    std::unique_ptr<Imported> imported;
    size_t place;
  };
  std::map<std::pair<int, uint64_t>, Opened> opened_;  ///< by rank and number; guarded by mutex_
  std::atomic<bool> opened_freed_{false};              ///< `opened_` got memory that its owner had freed
  std::atomic<bool> quit_{false};
  std::thread thread_;  ///< the last member, because it uses the others
};

}  // namespace chorale::cuda
