/// \file
/// Transports connect a rank to all others, for kernels that send and receive themselves
/// (chorale/device.hpp). The application makes and owns them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "chorale/device/link.hpp"
#include "chorale/types.hpp"
#include "chorale/world.hpp"

namespace chorale {

/// Sets up a transport. The same on all ranks.
struct RendezvousOptions {
  /// The size of the region through which data of one peer comes. It is cut into a ring for each channel, and
  /// each ring into slots of whole 16 bytes; the rest is not used. Messages may be longer, because a ring is
  /// used again as it is read.
  uint64_t per_peer_bytes = 0;
  uint32_t max_channels = 32;  ///< groups that can work on one peer and direction at a time; at most 1024
  uint32_t depth = 2;          ///< slots of a ring; at most 256
  /// The most payload bytes for each peer and channel that can be sent as packets at a time, by
  /// send_packets() and by short collectives; 0: none. Packets take eight times as much memory.
  uint64_t packet_bytes = 0;
  enum class Space : uint8_t { host, device } space = Space::host;  ///< the memory that holds the rings
  /// Says in whose memory a ring lies. At the receiver, the sender writes to the peer; at the sender, the
  /// receiver reads from the peer. Between GPUs reads carry more (docs/benchmarks.md), but then each read of
  /// a consume hook goes to the peer's memory, so choose `sender` for hooks that read once.
  /// direct_rendezvous() only.
  enum class RingAt : uint8_t { receiver, sender } ring_at = RingAt::receiver;
};
using Space = RendezvousOptions::Space;
using RingAt = RendezvousOptions::RingAt;

/// Says what a proxy moves data with.
enum class ProxyKind : uint8_t {
  shared_memory,  ///< a thread copies into memory that is mapped in both processes
  copy_engine     ///< of the GPU; Space::device only
};

/// Reports something that this build does not have.
struct Unsupported : UsageError {
  using UsageError::UsageError;
};

class Proxied;

/// Links a rank to all ranks of a world. The world must outlive it. Peers write into its memory, so destroy
/// it after the launches of all ranks have ended (World::barrier()).
///
/// Use a transport from one lane at a time: one CUDA stream, or on the CPU one thread. Over all ranks, each
/// message that is sent must also be received. Nothing has to be reset between launches or replays.
class Transport {
 public:
  virtual ~Transport() = default;

  World& world() const { return *world_; }
  int rank() const { return world_->rank(); }
  int world_size() const { return world_->ranks(); }

  virtual uint64_t per_peer_bytes() const = 0;  ///< the bytes in use: max_channels() rings
  virtual uint32_t max_channels() const = 0;
  virtual uint32_t depth() const = 0;       ///< slots of a ring
  virtual uint64_t slot_bytes() const = 0;  ///< the longest tile
  virtual Space space() const = 0;
  virtual LinkKind link_kind(int peer) const = 0;

  /// \throws UsageError if there is no such peer or channel
  virtual Endpoint endpoint(int peer, uint32_t channel = 0) const = 0;

  /// Returns all endpoints, in memory that kernels can read. The table lives as long as the transport.
  virtual EndpointTable table() const = 0;

  /// Makes the links new, so that the remains of a stopped launch are not taken for data. Collective; call it
  /// with no kernel running, after World::reset().
  virtual void reset() = 0;

  /// Returns the transport's number, from 1, among those that rank 0's process has made. It is the same on
  /// all ranks, and no two transports of a world share it.
  uint64_t number() const { return number_; }

  // -- For launchers

  /// Marks the transport as used by one launch in `lane`. Hold it while the launch runs on the CPU, and while
  /// it is enqueued on CUDA.
  /// \throws UsageError if another lane has used the transport and hand_over() was not called since; if a
  ///         launch runs; or if an earlier launch was stopped (or may have been, because World::reset() was
  ///         called) and reset() was not called since
  class Use {
   public:
    Use(Transport& transport, const void* lane);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    /// Gives the transport to only one of two threads. It is given back also when the rest of Use throws.
    struct Claim {
      explicit Claim(Transport& of);
      ~Claim();
      Transport& transport;
    };
    const Claim claim_;
    std::vector<std::unique_ptr<Use>> parts_;
  };

  /// Lets the next launch be in another lane. The application must have synchronised with the last lane
  /// before.
  void hand_over();

  /// Returns the GPU that kernels on this transport run on, as cudaSetDevice() counts; -1 if it is in host
  /// memory.
  virtual int device() const { return -1; }

  /// Returns the world's abort word, as kernels of this space see it; null in host memory.
  virtual AbortWord* device_abort_word() const { return nullptr; }

  /// Records that a launch was stopped.
  void set_broken();

  /// Returns the proxies that must run during a launch.
  virtual std::vector<Proxied*> proxies() const { return {}; }

  /// Returns the transports that this one takes its links from. They are used, and stopped, together with it.
  virtual std::vector<Transport*> parts() const { return {}; }

 protected:
  Transport(World& world, uint64_t number) : world_(&world), number_(number), resets_(world.resets()) {}
  void set_mended();

 private:
  World* world_;
  const uint64_t number_;
  uint64_t resets_;  ///< the world's resets() when the links were new
  const void* lane_ = nullptr;
  bool has_lane_ = false, broken_ = false, used_ = false;
  std::atomic<bool> in_use_{false};
};

/// Makes links over memory that is mapped at the peers; collective. On the CPU ranks may be threads or
/// processes.
/// \throws UsageError for options that cannot be, on all ranks
/// \throws RunError mismatch, on all ranks, if their options differ; otherwise as Window::create()
std::unique_ptr<Transport> direct_rendezvous(World& world, const RendezvousOptions& options);

/// Makes links over a proxy, a thread of this process; collective. On GPUs the proxy has the copy engine move
/// what kernels ask for. Such links have no packets. Errors are as for direct_rendezvous(). It also throws
/// UsageError for a proxy that does not work in this space.
std::unique_ptr<Transport> port_rendezvous(World& world, const RendezvousOptions& options, ProxyKind proxy);

/// Makes links from two transports of one world: those of `intra` to ranks of the same domain, those of
/// `inter` to others. Collective. A domain is `local_domain_size` ranks side by side.
/// \throws UsageError if one is null, their slots differ or the size is less than 1
/// \throws RunError mismatch, on all ranks, if the ranks give different sizes or different transports
std::unique_ptr<Transport> mesh(std::shared_ptr<Transport> intra, std::shared_ptr<Transport> inter,
                                int local_domain_size);

/// Says how a kernel uses its links.
enum class Form : uint8_t {
  one_way,            ///< each group sends or receives: send_tiles(), recv_tiles(), forward_tiles()
  interleaved,        ///< each group does both by turns: sendrecv_tiles(), all_gather() and so on
  send_then_receive,  ///< each group sends a message and then receives one over the same link
  whole               ///< the message stays in the region, because nobody frees slots while it is sent
};

/// Checks that `groups` groups can move a message of `elements` elements to one peer. Call it before anything
/// is sent. It checks in this order: a slot holds whole elements; the message fits (only Form::whole needs
/// that); there are as many channels as groups; the form ends instead of waiting for ever.
/// \throws UsageError that names the check that failed, with the numbers and the remedy
void check_transfer(const Transport& transport, uint64_t elements, uint64_t element_bytes, uint32_t groups,
                    Form form = Form::one_way);
void check_transfer(const Transport& transport, uint64_t elements, DType type, uint32_t groups,
                    Form form = Form::one_way);

}  // namespace chorale
