// This part of RemoteEndpoint turns orders into messages, and carries out received messages.

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "chorale/device/atomics.hpp"
#include "chorale/plan.hpp"
#include "endpoint.hpp"
#include "executor/lowering/bind.hpp"
#include "executor/world/collective_try.hpp"

namespace chorale::remote {
namespace {

/// Limits the bytes that are sent but not done. Receivers may have to store that many.
constexpr uint64_t most_on_the_way = uint64_t{64} << 20;

}  // namespace

// -- Sending

void RemoteEndpoint::send(const Order& order) {
  const Lock lock(mutex_);
  if (!link_ || dropped_ || !entries_.contains(order.binding)) return;
  const Stream stream{order.binding, order.peer};
  outboxes_[stream].orders.push_back(order);
  to_begin_.insert(stream);
}

/// Begins the next message of each stream.
bool RemoteEndpoint::begin_orders() {
  bool any = false;
  std::erase_if(to_begin_, [&](const Stream& stream) {
    Outbox& outbox = outboxes_.at(stream);
    any |= begin(stream, outbox);
    return outbox.orders.empty();
  });
  return any;
}

/// Begins the next message of a stream. Returns false if there is no staging memory for it.
bool RemoteEndpoint::begin(const Stream& stream, Outbox& outbox) {
  const Order& order = outbox.orders.front();
  const uint64_t bytes = std::min<uint64_t>(order.bytes - outbox.begun, copies_->piece_bytes());
  Held held;
  if (bytes != 0) {
    // A stream with nothing in flight may always send a piece, so that a stream that waits at its receiver
    // does not block others.
    if (bytes_on_the_way_ >= most_on_the_way && !outbox.sent.empty()) return false;
    try {
      held.payload = copies_->copy_out(order.from + outbox.begun, bytes);
    } catch (const std::bad_alloc&) {
      link_->lack(bytes);
      return false;
    }
    if (!held.payload.data) return false;
    ++copies_out_;
  }
  Message& message = held.message;
  message.buffer = order.to.buffer;
  message.offset = order.to.offset + outbox.begun;
  message.binding = order.binding;
  message.turn = ++outbox.last_turn;
  message.run = order.run;
  Sent sent{message.turn, bytes, {}};
  outbox.begun += bytes;
  if (outbox.begun == order.bytes) {
    message.signal = order.signal;
    message.posted = order.posted;
    if (!outbox.gone) sent.done = {order.client, order.channel};
    outbox.begun = 0;
    outbox.orders.pop_front();
  }
  outbox.sent.push_back(sent);
  bytes_on_the_way_ += bytes;
  if (bytes == 0) {
    link_->send(stream.second, world::bytes_of(message));
  } else {
    leaving_.push_back({copies_out_, stream.second, std::move(held)});
  }
  return true;
}

bool RemoteEndpoint::send_what_left() {
  bool any = false;
  for (; !leaving_.empty() && leaving_.front().copy <= copies_->ended_out(); any = true) {
    Leaving& leaving = leaving_.front();
    link_->send(leaving.peer, world::bytes_of(leaving.held.message), std::move(leaving.held.payload));
    leaving_.pop_front();
  }
  return any;
}

void RemoteEndpoint::take_done(const Stream& stream, uint64_t turn) {
  const auto found = outboxes_.find(stream);
  if (found == outboxes_.end()) return;
  Outbox& outbox = found->second;
  for (; !outbox.sent.empty() && outbox.sent.front().turn <= turn; outbox.sent.pop_front()) {
    const Sent& sent = outbox.sent.front();
    bytes_on_the_way_ -= sent.bytes;
    moved_ = true;
    if (sent.done) events_.done(sent.done->first, sent.done->second);
  }
  if (outbox.gone && outbox.empty()) outboxes_.erase(found);
}

/// Handles a peer's goodbye. The peer carries out nothing more, so all orders to it count as done. If some
/// code waits for more from the peer, its wait reports that.
void RemoteEndpoint::leave(int peer) {
  if (dropped_) return;
  for (auto at = outboxes_.begin(); at != outboxes_.end();) {
    const auto [stream, outbox] = std::pair(at->first, &at->second);
    ++at;  // take_done() may erase the outbox
    if (stream.second == peer) take_done(stream, outbox->last_turn);
  }
}

// -- Receiving

void RemoteEndpoint::come(int from, std::span<const std::byte> header, ucx::Payload payload) {
  if (dropped_ || header.size() != sizeof(Message)) return;
  const Message message = world::read_as<Message>(header);
  const Stream stream{message.binding, from};
  if (message.kind == Message::Kind::done) return take_done(stream, message.turn);
  if (message.binding <= registered_ && !entries_.contains(message.binding)) return owe(stream, message.turn);
  inboxes_[stream].waiting.emplace(message.turn, Held{message, std::move(payload)});
  to_deliver_.insert(stream);
}

/// Records that the sender must be told that all messages up to `turn` are done.
void RemoteEndpoint::owe(const Stream& stream, uint64_t turn) {
  uint64_t& owed = to_tell_[stream];
  owed = std::max(owed, turn);
}

/// Carries out the next messages of each stream.
bool RemoteEndpoint::deliver() {
  bool any = false;
  std::erase_if(to_deliver_, [&](const Stream& stream) {
    const auto found = inboxes_.find(stream);
    if (found == inboxes_.end()) return true;
    Inbox& inbox = found->second;
    while (!inbox.waiting.empty() && inbox.waiting.begin()->first == inbox.begun + 1) {
      const Carried carried = carry_out(stream, inbox.waiting.begin()->second);
      if (carried != Carried::yes) return carried == Carried::waits_for_peers;
      ++inbox.begun;
      inbox.waiting.erase(inbox.waiting.begin());
      any = true;
    }
    return true;
  });
  return any;
}

RemoteEndpoint::Carried RemoteEndpoint::carry_out(const Stream& stream, const Held& held) {
  const auto found = entries_.find(stream.first);
  if (found == entries_.end()) return Carried::waits_for_peers;
  const Entry& entry = found->second;
  const Message& message = held.message;
  const bool runs_name_it =
      entry.memory.runs_name_buffers && message.buffer <= uint32_t(BufferKind::output) && held.payload.bytes;
  if (runs_name_it && message.run > entry.run) return Carried::waits_for_peers;
  const bool over = runs_name_it && !(entry.running && message.run == entry.run);
  if (const std::string fault = fault_of(entry, stream.second, held, over); !fault.empty()) {
    world_.abort(fault);
    return Carried::waits_for_peers;
  }
  Arriving arriving;
  arriving.stream = stream;
  arriving.turn = message.turn;
  if (held.payload.bytes != 0) {
    char* const to = entry.memory.buffers[message.buffer].base + message.offset;
    if (!copies_->copy_in(to, held.payload, message.buffer == lowering::packet_kind))
      return Carried::waits_for_room;
    arriving.copy = ++copies_in_;
  }
  if (message.signal != no_signal) {
    arriving.signal = &entry.memory.signals[message.signal];
    arriving.posted = message.posted;
  }
  arriving_.push_back(arriving);
  return Carried::yes;
}

/// Returns why a message must not be carried out; "" if it can be.
std::string RemoteEndpoint::fault_of(const Entry& entry, int from, const Held& held, bool over) const {
  const Message& message = held.message;
  const uint64_t bytes = held.payload.bytes;
  if (over) {
    return fmt::format(
        "rank {} has put into the {} of rank {} after the launch there had ended: the plan does not "
        "make it wait; chorale check shows where",
        from, buffer_names[message.buffer], rank_);
  }
  if (bytes != 0) {
    const auto& buffers = entry.memory.buffers;
    const uint64_t room = message.buffer < buffers.size() ? buffers[message.buffer].bytes : 0;
    if (bytes > copies_->piece_bytes() || message.offset > room || bytes > room - message.offset) {
      return fmt::format("rank {} puts {} bytes at byte {} of a buffer of rank {} that has {}", from, bytes,
                         message.offset, rank_, room);
    }
  }
  if (message.signal != no_signal && message.signal >= entry.memory.n_signals) {
    return fmt::format("rank {} sets signal {} of rank {}, which has {}", from, message.signal, rank_,
                       entry.memory.n_signals);
  }
  return "";
}

/// Sets the signals of messages whose data has been copied, and answers the senders.
bool RemoteEndpoint::finish_arrivals() {
  for (; !arriving_.empty() && arriving_.front().copy <= copies_->ended_in(); arriving_.pop_front()) {
    const Arriving& first = arriving_.front();
    if (first.signal) store_release(&first.signal->value, first.posted);
    owe(first.stream, first.turn);
  }
  if (to_tell_.empty()) return false;
  for (const auto& [stream, turn] : to_tell_) {
    Message message;
    message.kind = Message::Kind::done;
    message.binding = stream.first;
    message.turn = turn;
    link_->send(stream.second, world::bytes_of(message));
    ++notes_;
  }
  to_tell_.clear();
  moved_ = true;
  return true;
}

}  // namespace chorale::remote
