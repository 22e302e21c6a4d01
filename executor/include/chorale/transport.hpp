/// \file
/// Transports: connections of a rank to all others, for kernels that send and receive themselves
/// (chorale/device.hpp). The application makes them, and owns them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "chorale/device/link.hpp"
#include "chorale/types.hpp"
#include "chorale/world.hpp"

namespace chorale {

/// What a transport is made of. The same on all ranks.
struct RendezvousOptions {
  /// Of the region through which data of one peer comes. It is cut into a ring for each channel and these
  /// into slots of whole 16 bytes; what is left over is not used. Messages may be longer: a ring is used
  /// again as it is read.
  uint64_t per_peer_bytes = 0;
  uint32_t max_channels = 32;  ///< groups that can work on one peer and direction at a time; at most 1024
  uint32_t depth = 2;          ///< slots of a ring; at most 256
  /// Of payload for each peer and channel that can be sent as packets at a time, by send_packets() and by
  /// collectives that are short; 0: none. Takes eight times as much memory.
  uint64_t packet_bytes = 0;
  enum class Space : uint8_t { host, device } space = Space::host;  ///< whose memory it is
  /// In whose memory a ring is: the one who fills it writes to the peer, or the one who empties it reads from
  /// there. Between GPUs reads carry more (docs/benchmarks.md), but a consume hook then reads the peer's
  /// memory as often as it reads: at the sender is for hooks that read once. direct_rendezvous() only.
  enum class RingAt : uint8_t { receiver, sender } ring_at = RingAt::receiver;
};
using Space = RendezvousOptions::Space;
using RingAt = RendezvousOptions::RingAt;

/// What a proxy moves data with.
enum class ProxyKind : uint8_t {
  shared_memory,  ///< a thread copies into memory that is mapped in both processes
  tcp,            ///< a connection between each two ranks
  copy_engine     ///< of the GPU; Space::device only
};

/// Something that is declared and does not exist yet.
struct Unsupported : UsageError {
  using UsageError::UsageError;
};

class Proxied;

/// A rank's links to all ranks of a world. The world outlives it. Peers write into its memory: it is
/// destroyed when the launches of all ranks have ended (World::barrier()).
///
/// A transport is used from one lane at a time: one CUDA stream, or on the CPU one thread. On all ranks the
/// same messages are sent as are received. Nothing has to be reset between launches or replays.
class Transport {
 public:
  virtual ~Transport() = default;

  World& world() const { return *world_; }
  int rank() const { return world_->rank(); }
  int world_size() const { return world_->ranks(); }

  virtual uint64_t per_peer_bytes() const = 0;  ///< that are used: max_channels() rings
  virtual uint32_t max_channels() const = 0;
  virtual uint32_t depth() const = 0;       ///< slots of a ring
  virtual uint64_t slot_bytes() const = 0;  ///< the longest tile
  virtual Space space() const = 0;
  virtual LinkKind link_kind(int peer) const = 0;

  /// \throws UsageError if there is no such peer or channel
  virtual Endpoint endpoint(int peer, uint32_t channel = 0) const = 0;

  /// All endpoints, where kernels can read them. Lives as long as the transport.
  virtual EndpointTable table() const = 0;

  /// Collective, with no kernel running: makes the links new, after World::reset(). What a launch that was
  /// stopped left behind would be taken for data.
  virtual void reset() = 0;

  /// Which of the transports that rank 0's process has made it is, from 1: the same on all ranks, and for no
  /// two of a world.
  uint64_t number() const { return number_; }

  // -- For launchers

  /// One launch in `lane`: held while it runs on the CPU, while it is enqueued on CUDA.
  /// \throws UsageError if another lane has used the transport and hand_over() was not called since, if a
  ///         launch runs, or if an earlier one was stopped, or may have been, as World::reset() was called,
  ///         and reset() was not called since
  class Use {
   public:
    Use(Transport& transport, const void* lane);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    /// Of two threads one has it; given back also where the rest of Use throws.
    struct Claim {
      explicit Claim(Transport& of);
      ~Claim();
      Transport& transport;
    };
    const Claim claim_;
    std::vector<std::unique_ptr<Use>> parts_;
  };

  /// The next launch may be in another lane; the application has synchronised with the last.
  void hand_over();

  /// The GPU that kernels on this transport run on, as cudaSetDevice() counts; -1: it is in host memory.
  virtual int device() const { return -1; }

  /// The world's abort word, as kernels of this space see it; null in host memory.
  virtual AbortWord* device_abort_word() const { return nullptr; }

  /// A launch was stopped.
  void set_broken();

  /// Those that have to run beside a launch.
  virtual std::vector<Proxied*> proxies() const { return {}; }

  /// Those whose links are this one's: used, and stopped, with it.
  virtual std::vector<Transport*> parts() const { return {}; }

 protected:
  Transport(World& world, uint64_t number) : world_(&world), number_(number), resets_(world.resets()) {}
  void set_mended();

 private:
  World* world_;
  const uint64_t number_;
  uint64_t resets_;  ///< of the world, when the links were new
  const void* lane_ = nullptr;
  bool has_lane_ = false, broken_ = false, used_ = false;
  std::atomic<bool> in_use_{false};
};

/// Collective: links over memory that is mapped at the peers. On the CPU ranks may be threads or processes.
/// \throws UsageError for options that cannot be, on all ranks
/// \throws RunError mismatch, on all ranks, if their options differ; otherwise as Window::create()
std::unique_ptr<Transport> direct_rendezvous(World& world, const RendezvousOptions& options);

/// Collective: links over a proxy: a thread of this process, which on GPUs has the copy engine move what
/// kernels ask for. Such links have no packets. Errors as direct_rendezvous(); UsageError also for a proxy
/// that is not for this space, and for tcp in a world that runs from a seed.
std::unique_ptr<Transport> port_rendezvous(World& world, const RendezvousOptions& options, ProxyKind proxy);

/// Collective: links of `intra` to ranks of the same domain, of `inter` to others. A domain is
/// `local_domain_size` ranks side by side. The two have been made of one world.
/// \throws UsageError if one is null, their slots differ or the size is less than 1; RunError mismatch, on
///         all ranks, if the ranks' sizes differ, or they give other transports
std::unique_ptr<Transport> mesh(std::shared_ptr<Transport> intra, std::shared_ptr<Transport> inter,
                                int local_domain_size);

/// InfiniBand from the GPU. \throws Unsupported always: it does not exist yet
std::unique_ptr<Transport> ib_rendezvous(World& world, const RendezvousOptions& options);

/// How a kernel uses its links.
enum class Form : uint8_t {
  one_way,            ///< each group sends or receives: send_tiles(), recv_tiles(), forward_tiles()
  interleaved,        ///< each group does both by turns: sendrecv_tiles(), all_gather() and so on
  send_then_receive,  ///< each group sends a message and then receives one over the same link
  whole               ///< the message stays in the region: nobody frees slots while it is sent
};

/// Whether `groups` groups can move a message of `elements` elements to one peer. To be asked before anything
/// is sent. The tests are made in this order: a slot holds whole elements; the message fits (only
/// Form::whole needs that); there are as many channels as groups; the form ends.
/// \throws UsageError saying which it is, with the numbers and the remedy
void check_transfer(const Transport& transport, uint64_t elements, uint64_t element_bytes, uint32_t groups,
                    Form form = Form::one_way);
void check_transfer(const Transport& transport, uint64_t elements, DType type, uint32_t groups,
                    Form form = Form::one_way);

}  // namespace chorale
