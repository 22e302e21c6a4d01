/// \file
/// This file holds the SM copies of a schedule on one rank: their links, and the work of their thread blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "chorale/transport.hpp"
#include "rank_program.hpp"
#include "sm_copy.hpp"

namespace chorale::schedule_run {

/// Sets the number of slots in a channel's ring. It keeps enough data in flight while the receiver's credit
/// for a slot travels back.
inline constexpr uint32_t ring_slots = 4;
/// Limit the size of a slot in bytes. A proxy takes microseconds for each slot, so its slots are longer.
inline constexpr uint64_t most_slot_bytes = 256 * 1024, most_port_slot_bytes = 2 * 1024 * 1024;

/// Returns the bytes that the rings and counters of a rank take.
uint64_t bytes_of_links(const Unrolled&);
/// Checks the number of channels.
/// \throws UsageError if two ranks would need more channels between them than a link can have
void check_links(const ChannelAssignment&);

class SmCopies {
 public:
  /// Connects the links. Collective. If the links are in device memory, it copies the tables that kernels
  /// read there.
  SmCopies(World&, const Unrolled&, Space, const RankProgram&);

  /// Returns the work of an action of the program that is an SM copy.
  const SmCopy& work(const Action& action) const { return *sm_copies_[size_t(&action - first_)]; }
  bool any() const { return !transports_.empty(); }
  /// Returns the world's abort word as kernels see it; null in host memory, and when there is no SM copy.
  AbortWord* device_abort_word() const;

  /// Keeps the proxies' threads at work while at least one object of this class lives. Otherwise they sleep.
  class Use {
   public:
    explicit Use(SmCopies& copies);
    ~Use();
    Use(const Use&) = delete;

   private:
    SmCopies& sm_copies_;
  };
  /// Returns the proxies that have to run as fibers beside the streams; there are some only with a seed.
  const std::vector<Proxied*>& proxies() const { return proxies_; }

 private:
  void place(const RankProgram& program, const std::vector<EndpointTable>& tables);
  const void* place(const void* data, uint64_t bytes);

  World& world_;
  const Space space_;
  const Action* first_;  // the first action of the program
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::optional<SmCopy>> sm_copies_;   // by action
  std::vector<std::shared_ptr<const void>> kept_;  // strided regions and parts
  std::vector<Proxied*> proxies_;
  std::mutex mutex_;
  unsigned uses_ = 0;  // guarded by mutex_
};

}  // namespace chorale::schedule_run
