// Links between GPUs over a proxy: kernels stage in a copy of the peer's ring, a thread of the host has the
// copy engine move it and then raise the peer's word, in the order of a stream.
//
// Raising a word behind a copy takes a stream as long as copying 2 MiB. So long copies have streams of their
// own, and that of the words waits for each copy's end: some copies go on while words are raised.

#include <optional>
#include <vector>

#include "../cuda/device.hpp"
#include "../cuda/device_memory.hpp"
#include "../cuda/error.hpp"
#include "../cuda/host_words.hpp"
#include "../cuda/orders.hpp"
#include "../cuda/stream.hpp"
#include "../cuda/stream_writes.hpp"
#include "../world/together.hpp"
#include "chorale/device/port.hpp"
#include "in_device_memory.hpp"
#include "rings.hpp"

namespace chorale::transport {
namespace {

using cuda::check;

constexpr uint64_t most_in_a_row = 16;
constexpr uint64_t long_copy = 256 << 10;  // bytes; shorter ones do without an event
constexpr size_t copy_streams = 2;

/// A stream of long copies, and the event that tells when it is where it is now. That may be recorded anew
/// while others wait for what it was.
struct Copies {
  cuda::OwnedStream stream{"a stream for long copies of a proxy", cuda::Priority::proxy};
  cuda::OwnedEvent copied{"the end of a long copy of a proxy"};
};

class DevicePort final : public Rings {
 public:
  DevicePort(World& world, const Geometry& geometry)
      : Rings(world, Space::device, geometry), memory_(device_window(world, geometry.bytes(world.ranks()))) {
    world::together(world, [&] { connect(); });
  }

  ~DevicePort() override {
    orders_->stop();
    for (const Copies& copies : copies_)
      cuda::check_quietly(cudaStreamSynchronize(copies.stream.get()), "the last copies of a proxy");
    cuda::check_quietly(cudaStreamSynchronize(stream_->get()), "the last copies of a proxy");
  }

  EndpointTable table() const override {
    return make_table(static_cast<const Endpoint*>(table_.get()), endpoints_);
  }

  AbortWord* device_abort_word() const override { return abort_.device(world().abort_word()); }
  int device() const override { return memory_->device(); }

  void reset() override {
    const cuda::CurrentDevice on(device());
    world::together(world(), [&] {
      memory_->finish();
      const std::lock_guard lock(orders_->lock());
      const uint64_t given = orders_->drop();
      // What had been taken is under way, to the peers as well. This stream waits for all copies.
      check(cudaStreamSynchronize(stream_->get()), "the last copies of a proxy");
      cuda::copy_to_device(done_.data(), &given, sizeof given, "the progress of a proxy");
      done_orders_ = given;
    });
    world::together(world(), [&] { memory_->clear(0, geometry_.state_at(world_size(), 0)); });
    set_mended();
  }

 private:
  void connect() {
    abort_ = cuda::HostMapping(world().abort_word(), sizeof(AbortWord));
    stages_ = cuda::DeviceMemory(geometry_.stage_bytes(world_size()), "copies of the peers' rings");
    done_ = cuda::DeviceMemory(sizeof(uint64_t), "the progress of a proxy");
    orders_ = std::make_unique<cuda::Orders<PortOrder>>(
        device(), [this](const PortOrder& order, bool more) { carry_out(order, more); },
        [this](const RunError& failed) {
          world().abort(std::string("the proxy of a transport: ") + failed.what());
        });
    stream_.emplace("a stream for a proxy", cuda::Priority::proxy);
    copies_ = std::vector<Copies>(copy_streams);
    PortQueue queue;
    queue.orders = orders_->ring();
    queue.slots = orders_->slots;
    queue.head = orders_->head();
    queue.tail = orders_->tail();
    queue.done = reinterpret_cast<const uint64_t*>(done_.data());
    queue_ = device_copy(&queue, sizeof queue);
    make_port_endpoints(memory_->at(world().rank()), stages_.data(),
                        static_cast<PortQueue*>(const_cast<void*>(queue_.get())));
    table_ = device_copy(endpoints_.data(), endpoints_.size() * sizeof(Endpoint));
    orders_->start();
  }

  /// In the order of the stream: the data, the peer's word, and that it is done. Of orders in a row the last
  /// says so for all, but for `most_in_a_row` at most: others may push for as long as one drains.
  void carry_out(const PortOrder& order, bool more) {
    const cuda::OutsideCapture outside;
    char* const theirs = memory_->at(order.peer);
    LinkState& link = *reinterpret_cast<LinkState*>(theirs + geometry_.state_at(rank(), order.channel));
    cuda::StreamWrites writes;
    if (order.kind == PortOrder::Kind::free) {
      writes.add(&link.slot_free.value, order.end);
    } else {
      copy(order, theirs);
      if (order.note != 0) writes.add(&link.data_ready.note, order.note);
      writes.add(&link.data_ready.value, order.end);
    }
    ++done_orders_;
    if (!more || done_orders_ % most_in_a_row == 0)
      writes.add(reinterpret_cast<const uint64_t*>(done_.data()), done_orders_);
    writes.enqueue(stream_->get(), "the signals and the progress of a proxy");
  }

  /// What is put into the stream behind this comes when the data is there.
  void copy(const PortOrder& order, char* theirs) {
    const uint64_t offset = order.begin % geometry_.window(), bytes = order.end - order.begin;
    char* const to = theirs + geometry_.ring_at(world_size(), rank(), order.channel) + offset;
    const char* const from = endpoint(order.peer, order.channel).send_dst + offset;
    const bool is_long = bytes >= long_copy;
    const Copies& next = copies_[long_copies_ % copy_streams];
    const cudaStream_t stream = is_long ? next.stream.get() : stream_->get();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "a copy of a proxy");
    if (!is_long) return;
    ++long_copies_;
    check(cudaEventRecord(next.copied.get(), stream), "the end of a copy of a proxy");
    check(cudaStreamWaitEvent(stream_->get(), next.copied.get(), 0), "the end of a copy of a proxy");
  }

  cuda::HostMapping abort_;
  std::unique_ptr<DeviceWindow> memory_;
  cuda::DeviceMemory stages_, done_;
  uint64_t done_orders_ = 0;
  std::optional<cuda::OwnedStream> stream_;  ///< in whose order words are raised
  std::vector<Copies> copies_;
  uint64_t long_copies_ = 0;
  std::shared_ptr<const void> queue_, table_;
  std::unique_ptr<cuda::Orders<PortOrder>> orders_;  // last: its thread uses the others
};

}  // namespace

std::unique_ptr<Transport> port_in_device_memory(World& world, const Geometry& geometry) {
  return std::make_unique<DevicePort>(world, geometry);
}

}  // namespace chorale::transport
