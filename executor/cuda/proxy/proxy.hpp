/// \file
/// The Proxy is the thread that serves a rank's port channels. It takes the triggers of blocks and lets the
/// copy engine move their data.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "chorale/world.hpp"
#include "executor/cuda/kernels/launch.hpp"
#include "executor/remote/endpoint.hpp"
#include "orders.hpp"
#include "proxy_copies.hpp"

namespace chorale::cuda {

class Proxy {
 public:
  /// Starts the thread. A copy that fails stops the world, because blocks here and at peers wait for the
  /// signals after it.
  Proxy(World& world, int device);
  ~Proxy();

  /// Registers a binding with the proxy while it lives.
  class Client {
   public:
    /// \param signals_at_peer by channel; those of port channels are in host memory; null: no block waits
    /// there
    /// \param completed by channel, in host memory
    /// \param peers by channel
    /// \param far by channel; empty: none leads to another host
    /// \param binding the result of remote::join_hosts(), if a channel leads to another host
    Client(Proxy& proxy, std::vector<Signal*> signals_at_peer, Signal* completed, std::vector<int> peers,
           std::vector<remote::RemoteEndpoint::FarEnd> far = {}, uint64_t binding = 0);
    /// Unregisters the binding. No launch of it may still run. Triggers of its blocks are still carried out.
    ~Client();

    PortFifo fifo() const;

   private:
    friend class Proxy;
    Proxy& proxy_;
    uint32_t id_ = 0;
    std::vector<Signal*> signals_at_peer_;
    Signal* completed_;
    const std::vector<int> peers_;
    std::vector<remote::RemoteEndpoint::FarEnd> far_;
    const uint64_t binding_;
    // Only the proxy writes these words, so it knows their values.
    std::vector<uint64_t> posted_, done_;
  };

  /// Returns the endpoint to other hosts, which the proxy drives. Makes it if there is none, for the current
  /// device.
  /// \throws RunError
  remote::RemoteEndpoint& endpoint();

  /// Drops the triggers of blocks that have stopped; none may run.
  void drop();

 private:
  void handle(const PortTrigger& trigger);
  void handle_far(Client& client, const PortTrigger& trigger);
  void tell_done(uint32_t client, uint32_t channel);

  World& world_;
  const int device_;
  // The lock of the orders guards these members.
  ProxyCopies copies_;
  std::vector<Client*> clients_;
  Orders<PortTrigger> orders_;
  std::unique_ptr<remote::RemoteEndpoint> endpoint_;  ///< made when a binding first reaches another host
};

}  // namespace chorale::cuda
