/// \file
/// A transport connects a rank to all other ranks. Use it when your kernels send and receive data with the
/// functions of chorale/device.hpp. The application makes and owns transports.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "chorale/device/link.hpp"
#include "chorale/types.hpp"
#include "chorale/world.hpp"

namespace chorale {

/// Sets up a transport. All ranks must pass the same options.
struct RendezvousOptions {
  /// Sets the bytes of the region that receives data from one peer. The region is cut into one ring per
  /// channel, and each ring into slots of a multiple of 16 bytes. The rest is not used. Messages may be
  /// longer than the region, because the slots of a ring are used again after they are read.
  uint64_t per_peer_bytes = 0;
  uint32_t max_channels = 32;  ///< channels per peer, at most 1024. Each channel and direction serves one
                               ///< group of threads at a time
  uint32_t depth = 2;          ///< slots per ring, at most 256
  /// Limits the payload bytes per peer and channel that send_packets() and short collectives send as packets
  /// at a time; 0: no packets. Packets take eight times as much memory as their payload.
  uint64_t packet_bytes = 0;
  enum class Space : uint8_t { host, device } space = Space::host;  ///< the memory that holds the rings
  /// Chooses whose memory holds a ring. With `receiver`, the sender writes into the peer's memory. With
  /// `sender`, the receiver reads from the peer's memory. Between GPUs reads are faster (docs/benchmarks.md),
  /// but then each read of a consume hook goes to the peer's memory. So choose `sender` for hooks that read
  /// each element once. Only direct_rendezvous() accepts `sender`.
  enum class RingAt : uint8_t { receiver, sender } ring_at = RingAt::receiver;
};
using Space = RendezvousOptions::Space;
using RingAt = RendezvousOptions::RingAt;

/// Names the mechanism with which a proxy moves data.
enum class ProxyKind : uint8_t {
  shared_memory,  ///< a thread copies into memory that both processes map
  copy_engine     ///< the GPU's copy engine moves data; Space::device only
};

/// Reports that this build lacks a feature, such as CUDA.
struct Unsupported : UsageError {
  using UsageError::UsageError;
};

class Proxied;

/// Links a rank to all ranks of a world. The world must outlive the transport. Peers write into the memory of
/// a transport, so destroy it after the launches of all ranks have ended (World::barrier()).
///
/// Use a transport from one CUDA stream, or see hand_over(). On the CPU, use it from one thread at a time.
/// Every message that one rank sends, another rank must receive. You need not reset anything between launches
/// or replays.
class Transport {
 public:
  virtual ~Transport() = default;

  World& world() const { return *world_; }
  int rank() const { return world_->rank(); }
  int world_size() const { return world_->ranks(); }

  virtual uint64_t per_peer_bytes() const = 0;     ///< the bytes of the max_channels() rings of one peer
  virtual uint32_t max_channels() const = 0;       ///< channels per peer
  virtual uint32_t depth() const = 0;              ///< slots per ring
  virtual uint64_t slot_bytes() const = 0;         ///< bytes of a slot, which is the longest tile
  virtual Space space() const = 0;                 ///< the memory that holds the rings
  virtual LinkKind link_kind(int peer) const = 0;  ///< what connects this rank to a peer

  /// Returns this rank's end of the link to `peer` over a channel. Kernels send and receive with it.
  /// \throws UsageError if there is no such peer or channel
  virtual Endpoint endpoint(int peer, uint32_t channel = 0) const = 0;

  /// Returns all endpoints in memory that kernels can read. The table lives as long as the transport.
  virtual EndpointTable table() const = 0;

  /// Clears all links, so that leftovers of a stopped launch are not taken for data. Collective; call it
  /// after World::reset(), when no kernel is running.
  virtual void reset() = 0;

  /// Returns a number that is the same on all ranks, and different for each transport of a world. It is 1 for
  /// the first transport that rank 0's process makes.
  uint64_t number() const { return number_; }

  // -- For launchers

  /// Marks the transport as used by one launch on `stream`, which is a CUDA stream, or null on the CPU. On
  /// the CPU, keep the object until the launch has ended. On CUDA, keep it until the launch is enqueued.
  /// \throws UsageError if another `stream` has used the transport and hand_over() was not called since; if a
  ///         launch runs; or if an earlier launch was stopped (or may have been, because World::reset() was
  ///         called) and reset() was not called since
  class Use {
   public:
    Use(Transport& transport, const void* stream);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    /// Reserves the transport, so that only one of two threads gets it. The destructor releases it, also when
    /// the rest of Use throws.
    struct Claim {
      explicit Claim(Transport& of);
      ~Claim();
      Transport& transport;
    };
    const Claim claim_;
    std::vector<std::unique_ptr<Use>> parts_;
  };

  /// Allows the next launch to use another CUDA stream. Synchronise with the last stream before you call it.
  void hand_over();

  /// Returns the GPU on which kernels of this transport run, as cudaSetDevice() numbers it; -1 for a
  /// transport in host memory.
  virtual int device() const { return -1; }

  /// Returns the address of the world's abort word for kernels of this space; null in host memory.
  virtual AbortWord* device_abort_word() const { return nullptr; }

  /// Records that a launch was stopped.
  void set_broken();

  /// Returns the proxies that must run during a launch.
  virtual std::vector<Proxied*> proxies() const { return {}; }

  /// Returns the transports whose links this transport uses. A launch uses and stops them together with this
  /// one.
  virtual std::vector<Transport*> parts() const { return {}; }

 protected:
  Transport(World& world, uint64_t number) : world_(&world), number_(number), resets_(world.resets()) {}
  void set_mended();

 private:
  World* world_;
  const uint64_t number_;
  uint64_t resets_;  ///< the world's resets() when the links were last cleared
  const void* stream_ = nullptr;
  bool has_stream_ = false, broken_ = false, used_ = false;
  std::atomic<bool> in_use_{false};
};

/// Names the transports that rendezvous() makes.
enum class TransportKind : uint8_t {
#define CHORALE_TRANSPORT(name) name,
#include "chorale/transports.def"
};

/// Makes links of a kind; collective. It takes the options, and throws the errors, of direct_rendezvous() or
/// port_rendezvous(). For TransportKind::port the proxy is ProxyKind::shared_memory in host memory, and
/// ProxyKind::copy_engine in device memory.
std::unique_ptr<Transport> rendezvous(World& world, TransportKind kind, const RendezvousOptions& options);

/// Makes links over memory that peers map; collective. On the CPU ranks may be threads or processes.
/// \throws UsageError, on all ranks, for options that are out of range
/// \throws RunError mismatch, on all ranks, if the options differ; otherwise as Window::create()
std::unique_ptr<Transport> direct_rendezvous(World& world, const RendezvousOptions& options);

/// Makes links over a proxy, which is a thread of this process; collective. On GPUs the proxy starts copies
/// on the copy engine when kernels ask for them. Such links have no packets.
/// \throws UsageError for a proxy that does not work in this space; otherwise as direct_rendezvous()
std::unique_ptr<Transport> port_rendezvous(World& world, const RendezvousOptions& options, ProxyKind proxy);

/// Combines two transports of one world; collective. A link to a rank of the same domain comes from `intra`,
/// and a link to any other rank from `inter`. A domain is `local_domain_size` consecutive ranks.
/// \throws UsageError if a transport is null, if their slots differ, or if the size is less than 1
/// \throws RunError mismatch, on all ranks, if the ranks give different sizes or different transports
std::unique_ptr<Transport> mesh(std::shared_ptr<Transport> intra, std::shared_ptr<Transport> inter,
                                int local_domain_size);

/// Describes how a kernel uses its links.
enum class Form : uint8_t {
  one_way,            ///< each group sends or receives: send_tiles(), recv_tiles(), forward_tiles()
  interleaved,        ///< each group alternates sends and receives: sendrecv_tiles(), all_gather() and others
  send_then_receive,  ///< each group sends a message and then receives one over the same link
  whole               ///< the whole message must fit in the region, because no slot is freed during it
};

/// Checks that `groups` groups can move a message of `elements` elements to one peer. Call it before you send
/// anything. It checks, in this order, that a slot holds whole elements, that the message fits (only for
/// Form::whole), that there is a channel for each group, and that the kernel cannot hang with this form.
/// \throws UsageError that names the failed check, the numbers and the remedy
void check_transfer(const Transport& transport, uint64_t elements, uint64_t element_bytes, uint32_t groups,
                    Form form = Form::one_way);
void check_transfer(const Transport& transport, uint64_t elements, DType type, uint32_t groups,
                    Form form = Form::one_way);

}  // namespace chorale
