#include "proxy.hpp"

#include <algorithm>
#include <utility>

#include "chorale/error.hpp"
#include "executor/cuda/device/device.hpp"
#include "executor/cuda/device/error.hpp"
#include "remote_copies.hpp"

namespace chorale::cuda {
namespace {

constexpr size_t most_streams = 8;

}  // namespace

Proxy::Proxy(World& world, int device)
    : world_(world),
      device_(device),
      copies_("a copy of a port channel", std::min<size_t>(size_t(world.ranks()), most_streams)),
      orders_(
          device, [this](const PortTrigger& trigger) { handle(trigger); },
          [&world](const RunError& failed) {
            world.abort(std::string("the proxy of port channels: ") + failed.what());
          },
          [this] {
            const bool here = copies_.work(), there = endpoint_ && endpoint_->work();
            return here || there;
          }) {
  orders_.start();
}

Proxy::~Proxy() {
  orders_.stop();
  try {
    const CurrentDevice on(device_);
    endpoint_.reset();  // sends everything that is still to be sent
  } catch (const RunError&) {
    // CUDA has failed. The application has been told, or will be.
  }
}

Proxy::Client::Client(Proxy& proxy, std::vector<Signal*> signals_at_peer, Signal* completed,
                      std::vector<int> peers, std::vector<remote::RemoteEndpoint::FarEnd> far,
                      uint64_t binding)
    : proxy_(proxy),
      signals_at_peer_(std::move(signals_at_peer)),
      completed_(completed),
      peers_(std::move(peers)),
      far_(std::move(far)),
      binding_(binding),
      posted_(signals_at_peer_.size()),
      done_(signals_at_peer_.size()) {
  const std::lock_guard lock(proxy_.orders_.lock());
  // No number is reused, because a client's triggers may be processed after the client is gone.
  id_ = uint32_t(proxy_.clients_.size());
  proxy_.clients_.push_back(this);
}

Proxy::Client::~Client() {
  const std::lock_guard lock(proxy_.orders_.lock());
  try {
    const CurrentDevice on(proxy_.device_);
    // A peer may wait for a last signal for which this rank's launch did not wait.
    proxy_.orders_.take_all();
    proxy_.copies_.finish();
  } catch (const RunError&) {
    // CUDA has failed. The application has been told, or will be.
  }
  proxy_.clients_[id_] = nullptr;
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
  copies_.drop();
  orders_.drop();
  if (endpoint_) endpoint_->drop();
}

remote::RemoteEndpoint& Proxy::endpoint() {
  if (endpoint_) return *endpoint_;
  remote::RemoteEndpoint::Events events;
  events.done = [this](uint32_t client, uint32_t channel) { tell_done(client, channel); };
  auto made =
      std::make_unique<remote::RemoteEndpoint>(world_, std::make_unique<RemoteCopies>(), std::move(events));
  const std::lock_guard lock(orders_.lock());
  endpoint_ = std::move(made);
  return *endpoint_;
}

/// Carries out one trigger of a block, in this order: copies the bytes, sets the signal, reports completion.
void Proxy::handle(const PortTrigger& trigger) {
  Client* const client = trigger.client < clients_.size() ? clients_[trigger.client] : nullptr;
  if (!client || trigger.channel >= client->done_.size()) return;
  if (!client->far_.empty() && client->far_[trigger.channel]) return handle_far(*client, trigger);
  // All copies to one peer use one stream, so they arrive there in this order.
  if (trigger.bytes != 0)
    copies_.copy(trigger.to, trigger.from, trigger.bytes, size_t(client->peers_[trigger.channel]));
  ProxyCopies::Words words;
  if (trigger.signal) {
    if (Signal* const there = client->signals_at_peer_[trigger.channel])
      words.add(&there->value, ++client->posted_[trigger.channel]);
  }
  words.add(&client->completed_[trigger.channel].value, ++client->done_[trigger.channel]);
  copies_.then(words);
}

void Proxy::handle_far(Client& client, const PortTrigger& trigger) {
  remote::RemoteEndpoint::Order order =
      client.far_[trigger.channel].order(trigger.from, trigger.to, trigger.bytes, trigger.signal);
  order.client = client.id_;
  order.channel = trigger.channel;
  order.binding = client.binding_;
  endpoint_->send(order);
}

/// Reports that the sent data has reached the peer. The binding may be gone if it did not wait for that.
void Proxy::tell_done(uint32_t id, uint32_t channel) {
  Client* const client = clients_[id];
  if (client) store_release(&client->completed_[channel].value, ++client->done_[channel]);
}

}  // namespace chorale::cuda
