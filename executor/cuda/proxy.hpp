/// \file
/// The thread that serves a rank's port channels: it takes what blocks push and has the copy engine do it.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "chorale/world.hpp"
#include "orders.hpp"
#include "stream.hpp"
#include "tape.hpp"

namespace chorale::cuda {

class Proxy {
 public:
  /// A copy that fails stops the world: blocks, here and at peers, wait for what would come behind it.
  Proxy(World& world, int device);

  /// A binding that uses the proxy. Registered while it lives.
  class Client {
   public:
    /// \param signals_at_peer  by channel; null: nobody can wait there
    /// \param completed        by channel, in device memory
    Client(Proxy& proxy, std::vector<Signal*> signals_at_peer, Signal* completed);
    ~Client();

    PortFifo fifo() const;

   private:
    friend class Proxy;
    Proxy& proxy_;
    uint32_t id_ = 0;
    std::vector<Signal*> signals_at_peer_;
    Signal* completed_;
    // Only the proxy writes these words, so it knows what they hold.
    std::vector<uint64_t> posted_, done_;
  };

  /// Forgets what was pushed by blocks that have stopped; none may run.
  void drop();

 private:
  void handle(const PortTrigger& trigger);

  const OwnedStream stream_;
  // Under the lock of the orders.
  std::vector<Client*> clients_;
  Orders<PortTrigger> orders_;  // last: its thread uses the others
};

}  // namespace chorale::cuda
