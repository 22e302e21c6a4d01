#include "endpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <new>

#include "../world/deadline.hpp"
#include "../world/group.hpp"
#include "../world/together.hpp"
#include "chorale/device/atomics.hpp"
#include "chorale/error.hpp"
#include "chorale/plan.hpp"

namespace chorale::remote {
namespace {

/// The most bytes that have been sent and not done. Receivers may have to keep so many.
constexpr uint64_t most_on_the_way = uint64_t{64} << 20;
constexpr std::chrono::seconds patience{1};  // the longest time that the destructor goes on sending
constexpr std::chrono::milliseconds nap{100};

/// Returns the first stream of a binding, in a map by stream.
template <class Map>
auto first_of(Map& streams, uint64_t binding) {
  return streams.lower_bound({binding, std::numeric_limits<int>::min()});
}

}  // namespace

Endpoint::Endpoint(World& world, std::unique_ptr<Copies> copies, Events events)
    : world_(world), rank_(world.rank()), events_(std::move(events)), copies_(std::move(copies)) {}

Endpoint::~Endpoint() {
  // A peer may still wait for a last signal of this rank.
  const auto until = Clock::now() + patience;
  const auto unsent = [this] {
    const Lock lock(mutex_);
    return link_ && !dropped_ && !stopped() && !(all_done() && arriving_.empty());
  };
  while (unsent() && Clock::now() < until) work();
  close();
}

// -- The life of the link

void Endpoint::connect() {
  {
    const Lock lock(mutex_);
    if (link_ && link_->current()) return;
  }
  // All ranks have entered the reset by now, or have had no link, so no rank still needs the old one.
  close();
  world::together(world_, [this] {
    const Lock lock(mutex_);
    copies_->finish();
  });
  net::WorldLink::Events events;
  events.message = [this](int from, std::span<const std::byte> header, net::Payload payload) {
    come(from, header, std::move(payload));
  };
  events.left = [this](int peer) { leave(peer); };
  auto link = std::make_unique<net::WorldLink>(world_, std::move(events));

  const Lock lock(mutex_);
  forget();
  entries_.clear();
  // The numbers of bindings begin anew, because ranks may have been stopped at different ones. Those from
  // before the reset do not come again.
  registered_ = world_.resets() << 32;
  dropped_ = false;
  link_ = std::move(link);
  changed_.notify_all();
}

/// Says goodbye to the peers, and destroys the link.
void Endpoint::close() {
  Lock lock(mutex_);
  while (asleep_) {
    link_->wake();
    changed_.wait_for(lock, std::chrono::milliseconds(1));
  }
  if (!link_) return;
  // Messages from before the reset belong to no binding.
  dropped_ = true;
  link_.reset();
}

void Endpoint::drop() {
  const Lock lock(mutex_);
  dropped_ = true;
  if (link_) link_->be_quiet();
  copies_->finish();
  forget();
}

/// Forgets all messages. No copy may be under way.
void Endpoint::forget() {
  outboxes_.clear();
  inboxes_.clear();
  to_begin_.clear();
  to_deliver_.clear();
  to_tell_.clear();
  leaving_.clear();
  arriving_.clear();
  bytes_on_the_way_ = notes_ = notes_left_ = notes_flushing_ = 0;
  flush_.reset();
}

bool Endpoint::stopped() const { return load_acquire(&world_.abort_word()->stop) != 0; }

// -- Bindings and their runs

uint64_t Endpoint::register_binding(const Memory& memory, const std::vector<int>& peers) {
  const Lock lock(mutex_);
  link_->meet(peers);
  entries_[++registered_].memory = memory;
  look_again(registered_);
  return registered_;
}

void Endpoint::unregister_binding(uint64_t binding) {
  const Lock lock(mutex_);
  if (entries_.erase(binding) == 0) return;
  for (Arriving& one : arriving_) {
    if (one.stream.first == binding) one.signal = nullptr;
  }
  for (auto at = first_of(inboxes_, binding); at != inboxes_.end() && at->first.first == binding;) {
    // Nothing is done with messages for a binding that is gone, such as a signal that nobody waits for.
    if (!at->second.waiting.empty()) owe(at->first, at->second.waiting.rbegin()->first);
    at = inboxes_.erase(at);
  }
  for (auto at = first_of(outboxes_, binding); at != outboxes_.end() && at->first.first == binding;) {
    at->second.gone = true;
    for (Sent& sent : at->second.sent) sent.done.reset();
    at = at->second.empty() ? outboxes_.erase(at) : std::next(at);
  }
}

void Endpoint::begin_run(uint64_t binding, uint64_t run, const Region& input, const Region& output) {
  const Lock lock(mutex_);
  until_.reset();
  const auto found = entries_.find(binding);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.memory.buffers[size_t(BufferKind::input)] = input;
  entry.memory.buffers[size_t(BufferKind::output)] = output;
  entry.run = run;
  entry.running = true;
  look_again(binding);
}

void Endpoint::end_run(uint64_t binding) {
  const Lock lock(mutex_);
  const auto found = entries_.find(binding);
  if (found != entries_.end()) found->second.running = false;
}

/// Lets messages that wait for something of a binding be looked at again.
void Endpoint::look_again(uint64_t binding) {
  for (auto at = first_of(inboxes_, binding); at != inboxes_.end() && at->first.first == binding; ++at)
    to_deliver_.insert(at->first);
}

// -- Sending

void Endpoint::send(const Order& order) {
  const Lock lock(mutex_);
  if (!link_ || dropped_ || !entries_.contains(order.binding)) return;
  const Stream stream{order.binding, order.peer};
  outboxes_[stream].orders.push_back(order);
  to_begin_.insert(stream);
}

/// Begins the next message of each stream.
bool Endpoint::begin_orders() {
  bool any = false;
  std::erase_if(to_begin_, [&](const Stream& stream) {
    Outbox& outbox = outboxes_.at(stream);
    any |= begin(stream, outbox);
    return outbox.orders.empty();
  });
  return any;
}

/// Begins the next message of a stream. Returns false if there is no room for it.
bool Endpoint::begin(const Stream& stream, Outbox& outbox) {
  const Order& order = outbox.orders.front();
  const uint64_t bytes = std::min<uint64_t>(order.bytes - outbox.begun, copies_->piece_bytes());
  Held held;
  if (bytes != 0) {
    // A stream that waits at its receiver keeps no other from sending.
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

bool Endpoint::send_what_left() {
  bool any = false;
  for (; !leaving_.empty() && leaving_.front().copy <= copies_->ended_out(); any = true) {
    Leaving& leaving = leaving_.front();
    link_->send(leaving.peer, world::bytes_of(leaving.held.message), std::move(leaving.held.payload));
    leaving_.pop_front();
  }
  return any;
}

void Endpoint::take_done(const Stream& stream, uint64_t turn) {
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

/// Notes that a peer has said goodbye. It has done all that it will do; if anything waits for more, its wait
/// reports that.
void Endpoint::leave(int peer) {
  if (dropped_) return;
  for (auto at = outboxes_.begin(); at != outboxes_.end();) {
    const auto [stream, outbox] = std::pair(at->first, &at->second);
    ++at;  // the next line may erase the outbox
    if (stream.second == peer) take_done(stream, outbox->last_turn);
  }
}

// -- Receiving

void Endpoint::come(int from, std::span<const std::byte> header, net::Payload payload) {
  if (dropped_ || header.size() != sizeof(Message)) return;
  const Message message = world::read_as<Message>(header);
  const Stream stream{message.binding, from};
  if (message.kind == Message::Kind::done) return take_done(stream, message.turn);
  if (message.binding <= registered_ && !entries_.contains(message.binding)) return owe(stream, message.turn);
  inboxes_[stream].waiting.emplace(message.turn, Held{message, std::move(payload)});
  to_deliver_.insert(stream);
}

/// Notes that the sender is to be told that all up to `turn` is done.
void Endpoint::owe(const Stream& stream, uint64_t turn) {
  uint64_t& owed = to_tell_[stream];
  owed = std::max(owed, turn);
}

/// Carries out the next messages of each stream.
bool Endpoint::deliver() {
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

Endpoint::Carried Endpoint::carry_out(const Stream& stream, const Held& held) {
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
    if (!copies_->copy_in(entry.memory.buffers[message.buffer].base + message.offset, held.payload))
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

/// Returns why a message must not be carried out; "" if it may.
std::string Endpoint::fault_of(const Entry& entry, int from, const Held& held, bool over) const {
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

/// Sets the signals behind data that are in place, and tells the senders.
bool Endpoint::finish_arrivals() {
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

// -- The thread of the proxy

bool Endpoint::work() {
  const Lock lock(mutex_);
  return work_locked();
}

bool Endpoint::work_locked() {
  if (!link_) return false;
  bool any = link_->progress();
  // After a stop, a caller that has been told of it may have given its memory back.
  if (!dropped_ && !stopped()) {
    try {
      any |= begin_orders();
      any |= send_what_left();
      any |= deliver();
      any |= finish_arrivals();
      any |= !leaving_.empty() || !arriving_.empty();
    } catch (const RunError& failed) {
      world_.abort(std::string("the proxy of port channels: ") + failed.what());
    }
  }
  if (std::exchange(moved_, false)) {
    if (until_) until_ = world::deadline_after(world_.timeout());
    if (events_.moved) events_.moved();
  }
  return any;
}

void Endpoint::rest() {
  Lock lock(mutex_);
  if (!link_) {
    changed_.wait(lock, [this] { return link_ || woken_; });
    woken_ = false;
    return;
  }
  if (std::exchange(woken_, false) || work_locked()) return;
  net::WorldLink& link = *link_;
  asleep_ = true;
  lock.unlock();
  link.sleep(nap);
  lock.lock();
  asleep_ = false;
  changed_.notify_all();
}

void Endpoint::wake() {
  const Lock lock(mutex_);
  woken_ = true;
  if (link_) link_->wake();
  changed_.notify_all();
}

// -- The end of a launch

void Endpoint::start_clock() {
  const Lock lock(mutex_);
  until_ = world::deadline_after(world_.timeout());
}

bool Endpoint::idle() {
  const Lock lock(mutex_);
  return all_done() && notes_ == notes_left_;
}

/// Returns true if peers have done all that was sent.
bool Endpoint::all_done() const {
  return std::all_of(outboxes_.begin(), outboxes_.end(), [](const auto& box) { return box.second.empty(); });
}

std::string Endpoint::waited_for() const {
  std::map<int, size_t> messages;
  for (const auto& [stream, outbox] : outboxes_) {
    if (!outbox.empty()) messages[stream.second] += outbox.sent.size() + outbox.orders.size();
  }
  std::vector<std::string> words;
  for (const auto& [peer, n] : messages) {
    words.push_back(
        fmt::format("rank {}, on {}, to take {} of its messages", peer, world_.group().host_text(peer), n));
  }
  return words.empty() ? "other hosts to hear what it has done"
                       : fmt::format("{}", fmt::join(words, ", and "));
}

bool Endpoint::settled() {
  const Lock lock(mutex_);
  if (!link_ || dropped_ || stopped()) return true;
  if (until_ && Clock::now() > *until_) {
    if (!all_done() || notes_ != notes_left_) {
      world_.group().raise(
          Stop::timed_out, rank_,
          fmt::format("rank {} waited {} for {}; {}", rank_, world::seconds_text(world_.timeout()),
                      waited_for(), world::more_time));
    }
    return true;
  }
  // Nothing else looks for dead peers while the launch waits here.
  world_.group().check_peers();
  if (!all_done()) return false;
  while (notes_ != notes_left_) {
    if (!flush_) {
      flush_.emplace();
      notes_flushing_ = notes_;
    }
    if (!link_->flushed(*flush_)) return false;
    flush_.reset();
    notes_left_ = notes_flushing_;
  }
  return true;
}

}  // namespace chorale::remote
