/// \file
/// The carries of a schedule on one rank: their links, and the work of their thread blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "carry.hpp"
#include "chorale/transport.hpp"
#include "tape.hpp"

namespace chorale::hostrun {

/// Slots of a channel's ring: with so many, enough data is under way while the receiver's word that a slot is
/// free travels back.
inline constexpr uint32_t ring_slots = 4;
/// The most bytes of a slot. A proxy takes microseconds for each slot, so its slots are longer.
inline constexpr uint64_t most_slot_bytes = 256 * 1024, most_port_slot_bytes = 2 * 1024 * 1024;

/// Bytes that the rings and counters of a rank take.
uint64_t bytes_of_links(const Unrolled&);
/// \throws UsageError if two ranks would need more channels between them than there can be
void check_links(const Ways&);

class Carries {
 public:
  /// Collective. What kernels read is copied to the device if the links are there.
  Carries(World&, const Unrolled&, Space, const Tape&);

  /// Of an action of the tape that is a carry.
  const Carry& work(const Action& action) const { return *carries_[size_t(&action - first_)]; }
  bool any() const { return !transports_.empty(); }
  /// The world's abort word, as kernels see it; null in host memory, and where nothing is carried.
  AbortWord* device_abort_word() const;

  /// The proxies' threads are at work as long as one of these lives, and sleep otherwise.
  class Use {
   public:
    explicit Use(Carries& carries);
    ~Use();
    Use(const Use&) = delete;

   private:
    Carries& carries_;
  };
  /// Where everything runs from a seed: what has to run as a fiber beside the lanes.
  const std::vector<Proxied*>& proxies() const { return proxies_; }

 private:
  void place(const Tape& tape, const std::vector<EndpointTable>& tables);
  const void* place(const void* data, uint64_t bytes);

  World& world_;
  const Space space_;
  const Action* first_;  // of the tape
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::optional<Carry>> carries_;      // by action
  std::vector<std::shared_ptr<const void>> kept_;  // strips and parts
  std::vector<Proxied*> proxies_;
  std::mutex mutex_;
  unsigned uses_ = 0;  // guarded by mutex_
};

}  // namespace chorale::hostrun
