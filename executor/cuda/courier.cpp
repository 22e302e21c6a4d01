#include "courier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <type_traits>
#include <utility>

#include "../world/group.hpp"
#include "../world/together.hpp"
#include "chorale/error.hpp"
#include "device.hpp"
#include "error.hpp"

namespace chorale::cuda {

using Clock = std::chrono::steady_clock;

namespace {

/// The most bytes of one message, and the number of pieces: 32 MiB each way.
constexpr size_t piece_bytes = size_t{512} << 10, pieces = 64;
/// The most bytes that have been sent and not done. Receivers may have to keep so many.
constexpr uint64_t most_on_the_way = uint64_t{64} << 20;
constexpr std::chrono::seconds patience{1};  // the longest time that the destructor goes on sending

}  // namespace

/// The header of a message. It travels as it is, because hosts are of one kind and run one version.
struct Courier::Header {
  enum class Kind : uint32_t {
    data,  ///< an order, or a piece of one
    done   ///< everything up to `turn` has been carried out
  };

  Kind kind = Kind::data;
  uint32_t buffer = 0;  ///< as in FarPlace
  uint64_t offset = 0;
  uint64_t binding = 0;
  uint64_t turn = 0;  ///< counts, from 1, the messages that one rank sends another
  uint64_t posted = 0;
  uint32_t signal = no_signal;
  uint32_t reserved = 0;
};

struct Courier::Held {
  Header header;
  net::Payload payload;
};

Courier::Courier(World& world, int device, std::mutex& lock, Done done)
    : world_(world), device_(device), lock_(lock), done_(std::move(done)) {}

Courier::~Courier() {
  // A peer may still wait for a last signal of this rank.
  const auto until = Clock::now() + patience;
  const auto unsent = [this] {
    for (const auto& [peer, outbox] : outboxes_) {
      if (!outbox.sent.empty() || !outbox.orders.empty()) return true;
    }
    return !leaving_.empty() || !arriving_.empty();
  };
  try {
    const CurrentDevice on(device_);
    while (link_ && !dropped_ && unsent() && load_acquire(&world_.abort_word()->stop) == 0 &&
           Clock::now() < until)
      work();
  } catch (const RunError&) {
    // CUDA has failed. The application has been told, or will be.
  }
  link_.reset();
  check_quietly(cudaStreamSynchronize(out_.get()), "the last copies to other hosts");
  check_quietly(cudaStreamSynchronize(in_.get()), "the last copies from other hosts");
}

void Courier::connect() {
  std::unique_ptr<net::WorldLink> old;
  {
    const std::lock_guard lock(lock_);
    if (link_ && link_->current()) return;
    // All ranks have entered the reset by now, or have had no link, so no rank still needs the old one.
    old = std::move(link_);
  }
  old.reset();
  world::together(world_, [this] {
    if (out_pieces_.piece_bytes() != 0) return;
    out_pieces_ = PinnedPieces(pieces, piece_bytes);
    in_pieces_ = PinnedPieces(pieces, piece_bytes);
    while (events_.size() < 2 * pieces) events_.emplace_back("an event for copies between hosts");
  });
  net::WorldLink::Events events;
  events.message = [this](int from, std::span<const std::byte> header, net::Payload payload) {
    come(from, header, std::move(payload));
  };
  // The peer has done all that it will do. If anything waits for more, its wait reports that.
  events.left = [this](int peer) { take_done(peer, outboxes_[peer].last_turn); };
  auto link = std::make_unique<net::WorldLink>(world_, std::move(events));

  const std::lock_guard lock(lock_);
  reached_.clear();
  enrolled_ = 0;
  dropped_ = false;
  link_ = std::move(link);
}

uint64_t Courier::enrol(const Reached& reached, const std::vector<int>& peers) {
  link_->meet(peers);
  reached_.emplace(++enrolled_, reached);
  return enrolled_;
}

void Courier::strike(uint64_t binding) {
  reached_.erase(binding);
  for (Arriving& one : arriving_) {
    if (one.binding == binding) one.signal = nullptr;
  }
}

// -- Sending

void Courier::send(const Order& order) {
  if (link_ && !dropped_) outboxes_[order.peer].orders.push_back(order);
}

bool Courier::begin_orders() {
  bool any = false;
  for (auto& [peer, outbox] : outboxes_) {
    if (!outbox.orders.empty()) any |= begin(peer, outbox);
  }
  return any;
}

/// Begins the next message to a peer, if there is room for it.
bool Courier::begin(int peer, Outbox& outbox) {
  const Order& order = outbox.orders.front();
  const uint64_t bytes = std::min<uint64_t>(order.bytes - outbox.begun, piece_bytes);
  net::Payload payload;
  if (bytes != 0) {
    if (bytes_on_the_way_ >= most_on_the_way) return false;
    payload.data = out_pieces_.take();
    if (!payload.data) return false;
    payload.bytes = bytes;
  }
  Header header;
  header.buffer = order.to.buffer;
  header.offset = order.to.offset + outbox.begun;
  header.binding = order.binding;
  header.turn = ++outbox.last_turn;
  Sent sent{header.turn, bytes, {}};
  const char* const from = order.from + outbox.begun;
  outbox.begun += bytes;
  if (outbox.begun == order.bytes) {
    header.signal = order.signal;
    header.posted = order.posted;
    sent.done = {order.client, order.channel};
    outbox.begun = 0;
    outbox.orders.pop_front();
  }
  outbox.sent.push_back(sent);
  bytes_on_the_way_ += bytes;
  if (bytes == 0) {
    link_->send(peer, world::bytes_of(header));
    return true;
  }
  check(cudaMemcpyAsync(payload.data.get(), from, bytes, cudaMemcpyDeviceToHost, out_.get()),
        "a copy to another host");
  Leaving leaving{recorded(out_.get()), peer, {}, std::move(payload)};
  static_assert(std::is_trivially_copyable_v<Header> && sizeof(Header) <= sizeof leaving.header &&
                sizeof(Header) <= net::WorldLink::most_header);
  std::memcpy(leaving.header.data(), &header, sizeof header);
  leaving_.push_back(std::move(leaving));
  return true;
}

bool Courier::send_what_left() {
  bool any = false;
  while (!leaving_.empty() && copied(leaving_.front().copied, "a copy to another host")) {
    Leaving& leaving = leaving_.front();
    link_->send(leaving.peer, std::span(leaving.header).first(sizeof(Header)), std::move(leaving.payload));
    leaving_.pop_front();
    any = true;
  }
  return any;
}

void Courier::take_done(int peer, uint64_t turn) {
  std::deque<Sent>& sent = outboxes_[peer].sent;
  for (; !sent.empty() && sent.front().turn <= turn; sent.pop_front()) {
    bytes_on_the_way_ -= sent.front().bytes;
    if (const auto& done = sent.front().done) done_(done->first, done->second);
  }
}

// -- Receiving

void Courier::come(int from, std::span<const std::byte> bytes, net::Payload payload) {
  if (dropped_ || bytes.size() != sizeof(Header)) return;
  const Header header = world::read_as<Header>(bytes);
  if (header.kind == Header::Kind::done) return take_done(from, header.turn);
  inboxes_[from].waiting.emplace(header.turn, Held{header, std::move(payload)});
}

/// Carries out the next messages of each sender.
bool Courier::deliver() {
  bool any = false;
  for (auto& [from, inbox] : inboxes_) {
    while (!inbox.waiting.empty() && inbox.waiting.begin()->first == inbox.begun + 1) {
      const Held& next = inbox.waiting.begin()->second;
      if (!carry_out(from, next.header, next.payload)) break;
      ++inbox.begun;
      inbox.waiting.erase(inbox.waiting.begin());
      any = true;
    }
  }
  return any;
}

/// Carries out one message. Returns false if it must wait for a piece.
bool Courier::carry_out(int from, const Header& header, const net::Payload& payload) {
  Arriving arriving;
  arriving.from = from;
  arriving.turn = header.turn;
  const auto found = reached_.find(header.binding);
  // Nothing is done with a message for a binding that is gone, such as a signal that nobody waits for.
  if (found != reached_.end()) {
    const Reached& reached = found->second;
    const Reached::Buffer* const buffer =
        header.buffer < reached.buffers.size() ? &reached.buffers[header.buffer] : nullptr;
    const bool inside =
        payload.bytes == 0 || (buffer && payload.bytes <= piece_bytes && header.offset <= buffer->bytes &&
                               payload.bytes <= buffer->bytes - header.offset);
    if (!inside || (header.signal != no_signal && header.signal >= reached.n_signals)) {
      throw RunError(RunError::Reason::other,
                     fmt::format("rank {} puts {} bytes at byte {} of a buffer of rank {} that has {}", from,
                                 payload.bytes, header.offset, world_.rank(), buffer ? buffer->bytes : 0));
    }
    if (payload.bytes != 0) {
      arriving.piece = in_pieces_.take();
      if (!arriving.piece) return false;
      std::memcpy(arriving.piece.get(), payload.data.get(), payload.bytes);
      check(cudaMemcpyAsync(buffer->base + header.offset, arriving.piece.get(), payload.bytes,
                            cudaMemcpyHostToDevice, in_.get()),
            "a copy from another host");
      arriving.copied = recorded(in_.get());
    }
    if (header.signal != no_signal) {
      arriving.binding = header.binding;
      arriving.signal = &reached.signals[header.signal];
      arriving.posted = header.posted;
    }
  }
  arriving_.push_back(std::move(arriving));
  return true;
}

bool Courier::tell_what_arrived() {
  bool any = false;
  const auto has_arrived = [this](Arriving& first) {
    return !first.copied || copied(*first.copied, "a copy from another host");
  };
  for (; !arriving_.empty() && has_arrived(arriving_.front()); any = true) {
    const Arriving& first = arriving_.front();
    if (first.signal) store_release(&first.signal->value, first.posted);
    inboxes_[first.from].done = first.turn;
    arriving_.pop_front();
  }
  if (!any) return false;
  for (auto& [from, inbox] : inboxes_) {
    if (inbox.told == inbox.done) continue;
    Header header;
    header.kind = Header::Kind::done;
    header.turn = inbox.told = inbox.done;
    link_->send(from, world::bytes_of(header));
  }
  return true;
}

bool Courier::work() {
  if (!link_) return false;
  const OutsideCapture outside;
  bool any = link_->progress();
  // After a stop, a caller that has been told of it may have given its memory back.
  if (dropped_ || load_acquire(&world_.abort_word()->stop) != 0) return any;
  any |= begin_orders();
  any |= send_what_left();
  any |= deliver();
  any |= tell_what_arrived();
  return any || !leaving_.empty() || !arriving_.empty();
}

void Courier::drop() {
  check(cudaStreamSynchronize(out_.get()), "the last copies to other hosts");
  check(cudaStreamSynchronize(in_.get()), "the last copies from other hosts");
  dropped_ = true;
  if (link_) link_->be_quiet();
  outboxes_.clear();
  inboxes_.clear();
  for (Leaving& one : leaving_) events_.push_back(std::move(one.copied));
  for (Arriving& one : arriving_) {
    if (one.copied) events_.push_back(std::move(*one.copied));
  }
  leaving_.clear();
  arriving_.clear();
  bytes_on_the_way_ = 0;
}

/// Returns an event that is recorded after the work that was enqueued.
OwnedEvent Courier::recorded(cudaStream_t stream) {
  OwnedEvent event = std::move(events_.back());
  events_.pop_back();
  check(cudaEventRecord(event.get(), stream), "the end of a copy between hosts");
  return event;
}

/// Returns true if the copies before the event have ended. Then the event is free again.
bool Courier::copied(OwnedEvent& event, const char* what) {
  const cudaError_t result = cudaEventQuery(event.get());
  if (result == cudaErrorNotReady) return false;
  check(result, what);
  events_.push_back(std::move(event));
  return true;
}

}  // namespace chorale::cuda
