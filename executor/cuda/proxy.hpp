/// \file
/// The thread that serves a rank's port channels: it takes what blocks push and has the copy engine do it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "chorale/world.hpp"
#include "courier.hpp"
#include "orders.hpp"
#include "proxy_copies.hpp"
#include "tape.hpp"

namespace chorale::cuda {

class Proxy {
 public:
  /// A copy that fails stops the world: blocks, here and at peers, wait for what would come behind it.
  Proxy(World& world, int device);
  ~Proxy();

  /// A channel to a rank of another host.
  struct FarEnd {
    int peer = -1;                                 ///< -1: the channel leads to no other host
    uint32_t signal_at_peer = Courier::no_signal;  ///< of that rank's
  };

  /// A binding that uses the proxy. Registered while it lives.
  class Client {
   public:
    /// \param signals_at_peer  by channel: of port channels in the host's memory; null: nobody can wait there
    /// \param completed        by channel, in the host's memory
    /// \param peers            by channel
    /// \param far              by channel; empty: none leads to another host
    /// \param binding          what enrol() gave, if one does
    Client(Proxy& proxy, std::vector<Signal*> signals_at_peer, Signal* completed, std::vector<int> peers,
           std::vector<FarEnd> far = {}, uint64_t binding = 0);
    /// No launch of it runs any more. What its blocks have pushed is still done.
    ~Client();

    PortFifo fifo() const;

   private:
    friend class Proxy;
    Proxy& proxy_;
    uint32_t id_ = 0;
    std::vector<Signal*> signals_at_peer_;
    Signal* completed_;
    const std::vector<int> peers_;
    const std::vector<FarEnd> far_;
    const uint64_t binding_;
    // Only the proxy writes these words, so it knows what they hold.
    std::vector<uint64_t> posted_, done_;
  };

  /// Collective, for a binding of which some rank has a channel to another host: the link between hosts, and
  /// what this rank lets them reach. \return its number
  /// \param peers  on other hosts, that it connects with this rank
  /// \throws RunError on all ranks if one of them cannot have the link
  uint64_t enrol(const Courier::Reached& reached, const std::vector<int>& peers);
  /// Peers write there no more.
  void strike(uint64_t binding);

  /// Forgets what was pushed by blocks that have stopped; none may run.
  void drop();

 private:
  void handle(const PortTrigger& trigger);
  void handle_far(Client& client, const PortTrigger& trigger);
  void tell_done(uint32_t client, uint32_t channel);

  World& world_;
  const int device_;
  // Under the lock of the orders.
  ProxyCopies copies_;
  std::vector<Client*> clients_;
  Orders<PortTrigger> orders_;
  std::unique_ptr<Courier> courier_;  ///< once there is somebody on another host to reach
};

}  // namespace chorale::cuda
