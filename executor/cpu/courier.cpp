#include "courier.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "../world/deadline.hpp"
#include "../world/group.hpp"
#include "../world/together.hpp"

namespace chorale::cpu {
namespace {

constexpr uint64_t most_on_the_way = uint64_t(64) << 20;  // bytes of which this rank keeps copies
constexpr std::chrono::milliseconds nap{100};

}  // namespace

Courier::Courier(World& world) : world_(world), rank_(world.rank()) {}

Courier::~Courier() { close(); }

void Courier::connect() {
  {
    const Lock lock(mutex_);
    if (link_ && link_->current()) return;
  }
  // All ranks have entered the reset by now, or have had no link, so no rank still needs the old one.
  close();
  net::WorldLink::Events events;
  events.message = [this](int from, std::span<const std::byte> header, net::Payload payload) {
    come(from, header, std::move(payload));
  };
  // The peer has done all that it will do. If anything waits for more, its wait reports that.
  events.left = [this](int peer) {
    for (auto& [stream, outbox] : outboxes_) {
      if (stream.second == peer) take_done(stream, outbox.last_turn);
    }
  };
  auto link = std::make_unique<net::WorldLink>(world_, std::move(events));

  const Lock lock(mutex_);
  entries_.clear();
  outboxes_.clear();
  inboxes_.clear();
  enrolled_ = bytes_on_the_way_ = notes_ = notes_left_ = notes_flushing_ = 0;
  flush_.reset();
  dropped_ = false;
  link_ = std::move(link);
  changed_.notify_all();
}

/// Says goodbye to the peers, and destroys the link.
void Courier::close() {
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

uint64_t Courier::enrol(const std::vector<int>& peers) {
  const Lock lock(mutex_);
  link_->meet(peers);
  entries_[++enrolled_];
  return enrolled_;
}

void Courier::strike(uint64_t binding) {
  const Lock lock(mutex_);
  entries_.erase(binding);
  // Its launches have ended on all ranks, so nothing is on its way.
  std::erase_if(outboxes_, [binding](const auto& box) { return box.first.first == binding; });
  std::erase_if(inboxes_, [binding](const auto& box) { return box.first.first == binding; });
}

void Courier::begin(uint64_t binding, const Run& run) {
  const Lock lock(mutex_);
  until_.reset();
  Entry& entry = entries_[binding];
  entry.run = run;
  entry.active = true;
  recheck_ = true;
}

void Courier::end(uint64_t binding) {
  const Lock lock(mutex_);
  const auto found = entries_.find(binding);
  if (found != entries_.end()) found->second.active = false;
}

void Courier::start_clock() {
  const Lock lock(mutex_);
  until_ = world::deadline_after(world_.timeout());
}

bool Courier::idle() {
  const Lock lock(mutex_);
  return idle_locked();
}

bool Courier::idle_locked() const {
  for (const auto& [stream, outbox] : outboxes_) {
    if (!outbox.waiting.empty()) return false;
  }
  return notes_ == notes_left_;
}

// -- Sending

bool Courier::has_room() {
  const Lock lock(mutex_);
  return bytes_on_the_way_ < most_on_the_way;
}

void Courier::send(const Trigger& part, bool last, Machine& machine) {
  const Run& run = *part.run;
  const image::Channel& channel = run.image.channels[part.channel];
  FarMessage message;
  message.kind = FarMessage::Kind::data;
  message.binding = run.binding;
  message.epoch = run.epoch;
  message.action = part.action;
  message.signal = channel.signal_at_peer;
  message.place = part.dst;
  message.place.buffer = run.image.buffers[part.dst.buffer].kind;
  message.range = part.range;
  net::Payload payload;
  try {
    payload = gather(machine, part);
  } catch (const std::bad_alloc&) {
    const Lock lock(mutex_);
    if (link_) link_->lack(size_t(part.range.end - part.range.first));
    return;
  }

  const Lock lock(mutex_);
  if (!link_ || dropped_) return;
  const int peer = int(channel.peer);
  Outbox& outbox = outboxes_[{run.binding, peer}];
  message.turn = ++outbox.last_turn;
  outbox.waiting.push_back({message.turn, payload.bytes, &run, part.channel, last});
  bytes_on_the_way_ += payload.bytes;
  link_->send(peer, world::bytes_of(message), std::move(payload));
}

void Courier::tell_done(const Stream& stream, uint64_t turn) {
  FarMessage message;
  message.kind = FarMessage::Kind::done;
  message.binding = stream.first;
  message.turn = turn;
  link_->send(stream.second, world::bytes_of(message));
}

// -- Receiving

void Courier::come(int from, std::span<const std::byte> header, net::Payload payload) {
  if (dropped_ || header.size() != sizeof(FarMessage)) return;
  const FarMessage message = world::read_as<FarMessage>(header);
  const Stream stream{message.binding, from};
  if (message.kind == FarMessage::Kind::done) return take_done(stream, message.turn);
  inboxes_[stream].waiting.emplace(message.turn, Held{message, std::move(payload)});
  recheck_ = true;
}

void Courier::take_done(const Stream& stream, uint64_t turn) {
  const auto found = outboxes_.find(stream);
  if (found == outboxes_.end()) return;
  std::deque<Sent>& waiting = found->second.waiting;
  if (!waiting.empty() && waiting.front().turn <= turn) move_on();
  for (; !waiting.empty() && waiting.front().turn <= turn; waiting.pop_front()) {
    const Sent& sent = waiting.front();
    bytes_on_the_way_ -= sent.bytes;
    if (!sent.last) continue;
    add_release(&sent.run->completed[sent.channel].value, uint64_t(1));
    sent.run->fifo->end();
  }
}

/// Carries out the next messages of a stream, as long as their run has begun.
void Courier::deliver(const Stream& stream, Inbox& inbox) {
  const auto found = entries_.find(stream.first);
  if (found == entries_.end() && stream.first <= enrolled_) {
    inbox.waiting.clear();
    return;
  }
  while (!inbox.waiting.empty()) {
    const auto first = inbox.waiting.begin();
    if (first->first != inbox.done + 1) break;
    if (found == entries_.end() || first->second.message.epoch > found->second.run.epoch) break;
    carry_out(found->second, stream.second, first->second);
    inbox.done = first->first;
    inbox.waiting.erase(first);
  }
  if (inbox.told == inbox.done) return;
  inbox.told = inbox.done;
  move_on();
  ++notes_;
  tell_done(stream, inbox.done);
}

void Courier::carry_out(Entry& entry, int from, const Held& held) {
  const FarMessage& message = held.message;
  Run run = entry.run;
  const bool over = !entry.active || message.epoch != run.epoch;
  if (over && held.payload.bytes != 0 && message.place.buffer <= uint32_t(BufferKind::output)) {
    world_.abort(fmt::format(
        "rank {} has put into the {} of rank {} after the launch there had ended: the plan does not "
        "make it wait; chorale check shows where",
        from, buffer_names[message.place.buffer], rank_));
    return;
  }
  run.epoch = message.epoch;
  const size_t room = Machine::room_bytes(run.image);
  if (room_.size() < room) room_.resize(room);
  const Group group;
  Machine machine(run, group, nullptr, room_.data());
  scatter(machine, message, held.payload);
  if (has(message.action, Action::signal) && message.signal != image::Channel::none)
    signal_add(group, &run.signals[message.signal]);
}

/// Notes progress. Called after something was done, here or at a peer.
void Courier::move_on() {
  if (until_) until_ = world::deadline_after(world_.timeout());
  world_.scheduler().moved();
}

bool Courier::look() {
  if (!link_) return false;
  bool any = link_->progress();
  if (std::exchange(recheck_, false) && !dropped_) {
    for (auto& [stream, inbox] : inboxes_) {
      const uint64_t before = inbox.done;
      deliver(stream, inbox);
      any |= inbox.done != before;
    }
  }
  return any;
}

bool Courier::work() {
  const Lock lock(mutex_);
  return look();
}

// -- The end of a launch, and the time between launches

std::string Courier::waited_for() const {
  std::map<int, size_t> messages;
  for (const auto& [stream, outbox] : outboxes_) {
    if (!outbox.waiting.empty()) messages[stream.second] += outbox.waiting.size();
  }
  std::vector<std::string> words;
  for (const auto& [peer, n] : messages) {
    words.push_back(
        fmt::format("rank {}, on {}, to take {} of its messages", peer, world_.group().host_text(peer), n));
  }
  return words.empty() ? "other hosts to hear what it has done"
                       : fmt::format("{}", fmt::join(words, ", and "));
}

bool Courier::settled() {
  const Lock lock(mutex_);
  if (!link_ || dropped_ || load_acquire(&world_.abort_word()->stop) != 0) return true;
  if (until_ && Clock::now() > *until_) {
    if (!idle_locked()) {
      world_.group().raise(
          Stop::timed_out, rank_,
          fmt::format("rank {} waited {} for {}; {}", rank_, world::seconds_text(world_.timeout()),
                      waited_for(), world::more_time));
    }
    return true;
  }
  // Nothing else looks for dead peers while the launch waits here.
  world_.group().check_peers();
  for (const auto& [stream, outbox] : outboxes_) {
    if (!outbox.waiting.empty()) return false;
  }
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

void Courier::rest() {
  Lock lock(mutex_);
  if (!link_) {
    changed_.wait(lock, [this] { return link_ || woken_; });
    woken_ = false;
    return;
  }
  if (std::exchange(woken_, false) || look()) return;
  net::WorldLink& link = *link_;
  asleep_ = true;
  lock.unlock();
  link.sleep(nap);
  lock.lock();
  asleep_ = false;
  changed_.notify_all();
}

void Courier::wake() {
  const Lock lock(mutex_);
  woken_ = true;
  if (link_) link_->wake();
  changed_.notify_all();
}

void Courier::drop() {
  const Lock lock(mutex_);
  dropped_ = true;
  if (link_) link_->be_quiet();
  outboxes_.clear();
  inboxes_.clear();
  bytes_on_the_way_ = 0;
  notes_ = notes_left_ = notes_flushing_ = 0;
}

}  // namespace chorale::cpu
