#include "proxy.hpp"

#include <chrono>
#include <span>

#include "chorale/error.hpp"
#include "device.hpp"
#include "driver.hpp"
#include "error.hpp"

namespace chorale::cuda {

Proxy::Proxy(int device)
    : device_(device),
      ring_(slots),
      tail_(1),
      head_(sizeof(uint64_t), "the counter of the port channels' FIFO") {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream for port channels");
  thread_ = std::thread([this] { serve(); });
}

Proxy::~Proxy() {
  quit_ = true;
  thread_.join();
  check_quietly(cudaStreamDestroy(stream_), "cudaStreamDestroy");
}

Proxy::Client::Client(Proxy& proxy, std::vector<Signal*> signals_at_peer, Signal* completed)
    : proxy_(proxy),
      signals_at_peer_(std::move(signals_at_peer)),
      completed_(completed),
      posted_(signals_at_peer_.size()),
      done_(signals_at_peer_.size()) {
  const std::lock_guard lock(proxy_.mutex_);
  // No number is given twice: what a client has pushed may come when it is gone, and is nobody else's.
  id_ = uint32_t(proxy_.clients_.size());
  proxy_.clients_.push_back(this);
}

Proxy::Client::~Client() {
  const std::lock_guard lock(proxy_.mutex_);
  proxy_.clients_[id_] = nullptr;
  check_quietly(cudaStreamSynchronize(proxy_.stream_), "the last copies of port channels");
}

PortFifo Proxy::Client::fifo() const {
  PortFifo fifo;
  fifo.slots = proxy_.ring_.device();
  fifo.head = reinterpret_cast<uint64_t*>(proxy_.head_.data());
  fifo.tail = proxy_.tail_.device();
  fifo.mask = slots - 1;
  fifo.client = id_;
  return fifo;
}

void Proxy::drop() {
  const std::lock_guard lock(mutex_);
  check(cudaStreamSynchronize(stream_), "the last copies of port channels");
  // Kernels have ended: what was given out was also written, or never will be.
  uint64_t head = 0;
  check(cudaMemcpy(&head, head_.data(), sizeof head, cudaMemcpyDeviceToHost), "the port channels' FIFO");
  for (PortTrigger& slot : std::span(ring_.host(), slots)) store_relaxed(&slot.turn, uint64_t(0));
  taken_ = head;
  store_release(tail_.host(), taken_);
  error_.clear();
}

std::string Proxy::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void Proxy::serve() {
  const CurrentDevice on(device_);
  using Clock = std::chrono::steady_clock;
  Clock::time_point busy = Clock::now();
  while (!quit_.load(std::memory_order_relaxed)) {
    bool worked = false;
    {
      const std::lock_guard lock(mutex_);
      const PortTrigger& slot = ring_[taken_ % slots];
      if (load_acquire(&slot.turn) == taken_ + 1) {
        const PortTrigger trigger = slot;
        store_release(tail_.host(), ++taken_);
        try {
          handle(trigger);
        } catch (const RunError& failed) {
          if (error_.empty()) error_ = failed.what();
        }
        worked = true;
      }
    }
    // Plans push in bursts: look closely for a while, then make room for others.
    const Clock::time_point now = Clock::now();
    if (worked) busy = now;
    if (now - busy > std::chrono::milliseconds(1)) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

/// In the order of the stream: the bytes, then the signal, then that it is done.
void Proxy::handle(const PortTrigger& trigger) {
  Client* const client = trigger.client < clients_.size() ? clients_[trigger.client] : nullptr;
  if (!client || trigger.channel >= client->done_.size()) return;
  const OutsideCapture outside;
  if (trigger.bytes != 0) {
    check(cudaMemcpyAsync(trigger.to, trigger.from, trigger.bytes, cudaMemcpyDefault, stream_),
          "a copy of a port channel");
  }
  const auto write = [this](const uint64_t* word, uint64_t value, const char* what) {
    check(driver().cuStreamWriteValue64(stream_, reinterpret_cast<CUdeviceptr>(word), value,
                                        CU_STREAM_WRITE_VALUE_DEFAULT),
          what);
  };
  if (trigger.signal) {
    if (Signal* const there = client->signals_at_peer_[trigger.channel]) {
      write(&there->value, ++client->posted_[trigger.channel], "a signal of a port channel");
    }
  }
  write(&client->completed_[trigger.channel].value, ++client->done_[trigger.channel],
        "a port channel's progress");
}

}  // namespace chorale::cuda
