#include "proxy.hpp"

#include "chorale/error.hpp"
#include "device.hpp"
#include "error.hpp"
#include "stream_writes.hpp"

namespace chorale::cuda {

Proxy::Proxy(World& world, int device)
    : stream_("a stream for port channels"),
      orders_(
          device, [this](const PortTrigger& trigger, bool) { handle(trigger); },
          [&world](const RunError& failed) {
            world.abort(std::string("the proxy of port channels: ") + failed.what());
          }) {
  orders_.start();
}

Proxy::Client::Client(Proxy& proxy, std::vector<Signal*> signals_at_peer, Signal* completed)
    : proxy_(proxy),
      signals_at_peer_(std::move(signals_at_peer)),
      completed_(completed),
      posted_(signals_at_peer_.size()),
      done_(signals_at_peer_.size()) {
  const std::lock_guard lock(proxy_.orders_.lock());
  // No number is given twice: what a client has pushed may come when it is gone, and is nobody else's.
  id_ = uint32_t(proxy_.clients_.size());
  proxy_.clients_.push_back(this);
}

Proxy::Client::~Client() {
  const std::lock_guard lock(proxy_.orders_.lock());
  proxy_.clients_[id_] = nullptr;
  check_quietly(cudaStreamSynchronize(proxy_.stream_.get()), "the last copies of port channels");
}

PortFifo Proxy::Client::fifo() const {
  PortFifo fifo;
  fifo.slots = proxy_.orders_.ring();
  fifo.head = proxy_.orders_.head();
  fifo.tail = proxy_.orders_.tail();
  fifo.mask = Orders<PortTrigger>::slots - 1;
  fifo.client = id_;
  return fifo;
}

void Proxy::drop() {
  const std::lock_guard lock(orders_.lock());
  check(cudaStreamSynchronize(stream_.get()), "the last copies of port channels");
  orders_.drop();
}

/// In the order of the stream: the bytes, then the signal, then that it is done.
void Proxy::handle(const PortTrigger& trigger) {
  Client* const client = trigger.client < clients_.size() ? clients_[trigger.client] : nullptr;
  if (!client || trigger.channel >= client->done_.size()) return;
  const OutsideCapture outside;
  if (trigger.bytes != 0) {
    check(cudaMemcpyAsync(trigger.to, trigger.from, trigger.bytes, cudaMemcpyDefault, stream_.get()),
          "a copy of a port channel");
  }
  StreamWrites writes;
  if (trigger.signal) {
    if (Signal* const there = client->signals_at_peer_[trigger.channel])
      writes.add(&there->value, ++client->posted_[trigger.channel]);
  }
  writes.add(&client->completed_[trigger.channel].value, ++client->done_[trigger.channel]);
  writes.enqueue(stream_.get(), "a signal and the progress of a port channel");
}

}  // namespace chorale::cuda
